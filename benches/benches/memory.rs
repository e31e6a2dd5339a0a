//! `cargo bench -p benches --bench memory`: measures the memory of a cluster of 10,000 Services with 10 endpoints each.
//!
//! Each way of reading it is measured in its own process, since an allocator keeps pages that were once in use.

#![expect(clippy::print_stdout, reason = "its output is the measurement")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use benches::{Shape, resident_kib, write_cluster, write_folder};
use cluster::index::Index;
use cluster::source::watch;

/// The argument with which this program runs the measured work.
const MEASURED: &str = "--hold";

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let [_, first, path] = arguments.as_slice()
        && first == MEASURED
    {
        return hold(Path::new(path));
    }
    let shape = Shape {
        services: 10_000,
        weights: Some("node=80,zone=15,*=5".to_owned()),
        ..Shape::default()
    };
    let place = tempfile::tempdir()?;
    let file = place.path().join("cluster.yaml");
    let mut out = BufWriter::new(File::create(&file)?);
    write_cluster(&shape, &mut out)?;
    out.flush()?;
    let folder = place.path().join("cluster");
    write_folder(&shape, &folder)?;
    println!("10,000 Services x 10 endpoints, watched; resident memory");
    for (name, path) in [("one file", file), ("a folder", folder)] {
        println!("{name}: {}", measured(path.as_os_str())?);
    }
    Ok(())
}

/// Starts a process that reads the cluster at `path`, and returns its output.
fn measured(path: &OsStr) -> Result<String> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.arg(MEASURED).arg(path).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Reads the cluster as the agent does, and prints how much memory it needs.
fn hold(path: &Path) -> Result<()> {
    let before = resident_kib()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut index = Index::new(Vec::new());
    let mut source = watch(path, cluster::AllowLists::default())?;
    runtime.block_on(async {
        while index.completeness().is_none() {
            let batch = source.next().await.context("the source ended")?;
            index.apply(batch);
            drop(index.snapshot_mut().take_dirty(""));
        }
        anyhow::Ok(())
    })?;
    let after = resident_kib()?;
    let services = index.snapshot().services().count();
    println!(
        "{:.1} MB for {services} Services",
        (after - before) / 1_000.0 * 1.024
    );
    Ok(())
}
