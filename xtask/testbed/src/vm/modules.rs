//! Unpacks the kernel modules that guests need on the host, because that is slow in a guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::command;
use super::kernel::Kernel;
use super::tools::Tools;

/// Folders below `kernel/` that are copied completely: the network and its dependencies.
const WHOLE: [&str; 5] = ["net", "lib", "crypto", "arch", "drivers/virtio"];

/// Modules of `drivers/net`: links for nodes, pods and tunnels.
const LINKS: [&str; 10] = [
    "bonding",
    "dummy",
    "geneve",
    "ifb",
    "macvlan",
    "net_failover",
    "nlmon",
    "tun",
    "veth",
    "virtio_net",
];

/// Further modules by name: `vxlan` has its own folder since 6.1, `overlay` is for container roots, `virtio_blk` for the
/// disks of lab nodes.
const MORE: [&str; 4] = ["vxlan", "overlay", "failover", "virtio_blk"];

/// Copies the modules of `kernel` into `root/lib/modules`, uncompressed and with their index.
pub(crate) fn unpack(kernel: &Kernel, tools: &Tools, root: &Path) -> anyhow::Result<()> {
    let home = root.join("lib/modules").join(&kernel.release);
    let mut files = Vec::new();
    collect(&kernel.modules, &kernel.modules, &mut files)?;
    let mut compressed: [Vec<PathBuf>; 2] = Default::default();
    for file in &files {
        let to = home.join("kernel").join(file);
        fs::create_dir_all(to.parent().unwrap_or(&home))?;
        fs::copy(kernel.modules.join(file), &to)?;
        match to.extension().and_then(|end| end.to_str()) {
            Some("xz") => compressed[0].push(to),
            Some("zst") => compressed[1].push(to),
            _ => {}
        }
    }
    expand(
        tools.host("xz")?.args(["--decompress", "--threads=1"]),
        &compressed[0],
    )?;
    expand(
        tools
            .host("zstd")?
            .args(["--decompress", "--rm", "--quiet"]),
        &compressed[1],
    )?;
    index(kernel, tools, root, &home)
}

/// Collects the paths below `root` of the modules that guests need.
fn collect(root: &Path, folder: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, into)?;
            continue;
        }
        let relative = path.strip_prefix(root)?;
        if is_wanted(relative) {
            into.push(relative.to_owned());
        }
    }
    Ok(())
}

/// Returns whether guests need the module `relative` (its path below `kernel/`).
fn is_wanted(relative: &Path) -> bool {
    let file = relative.file_name().unwrap_or_default().to_string_lossy();
    let Some((name, _)) = file.split_once(".ko") else {
        return false;
    };
    WHOLE.iter().any(|folder| relative.starts_with(folder))
        || MORE.contains(&name)
        || (relative.starts_with("drivers/net") && LINKS.contains(&name))
}

/// Runs `program` once for all `files`.
fn expand(program: &mut Command, files: &[PathBuf]) -> anyhow::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    command::output(program.args(files))
        .map(drop)
        .context("cannot unpack the kernel's modules")
}

/// Writes `modules.dep` and the other index files.
fn index(kernel: &Kernel, tools: &Tools, root: &Path, home: &Path) -> anyhow::Result<()> {
    let source = kernel.modules.parent().unwrap_or(&kernel.modules);
    for list in [
        "modules.order",
        "modules.builtin",
        "modules.builtin.modinfo",
    ] {
        if source.join(list).exists() {
            fs::copy(source.join(list), home.join(list))?;
        }
    }
    command::output(
        tools
            .host("depmod")?
            .arg("--basedir")
            .arg(root)
            .arg(&kernel.release),
    )
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_modules_are_included_and_network_cards_are_not() {
        assert!(is_wanted(Path::new("net/netfilter/ipvs/ip_vs.ko.xz")));
        assert!(is_wanted(Path::new("drivers/net/dummy.ko")));
        assert!(is_wanted(Path::new("drivers/net/vxlan/vxlan.ko.xz")));
        assert!(!is_wanted(Path::new(
            "drivers/net/ethernet/intel/ice/ice.ko.xz"
        )));
        assert!(!is_wanted(Path::new("net/Makefile")));
    }
}
