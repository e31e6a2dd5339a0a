//! `generate`: writes a generated cluster as Kubernetes YAML.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use benches::{Detail, Shape, write_cluster, write_folder};
use clap::Parser;
use guest_wire::ServiceType;

/// Write a generated cluster as Kubernetes YAML: the same arguments give the same bytes.
#[derive(Parser)]
#[command(name = "generate")]
struct Args {
    /// Number of Services, each with one port.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    services: u32,
    /// The type of the Services; every load balancer has an address.
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_enum,
        default_value = "ClusterIP"
    )]
    service_type: ServiceType,
    /// Number of endpoints of each Service.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    endpoints: u32,
    /// Number of nodes with endpoints.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    nodes: u32,
    /// Number of zones of the nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    zones: u32,
    /// Number of racks of the nodes; their label is `rack`.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=50_000))]
    racks: u32,
    /// Annotate every Service with these topology weights, such as `node=80,zone=15,*=5`.
    #[arg(long, value_name = "LEVEL=WEIGHT,...")]
    weights: Option<String>,
    /// Print all fields of the API server, not only those that affect decisions.
    #[arg(long)]
    full: bool,
    /// Write a folder with one file for each Service, instead of one file.
    #[arg(long, conflicts_with = "file", value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Write this file, instead of standard output.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let shape = Shape {
        services: args.services,
        service_type: args.service_type,
        endpoints: args.endpoints,
        nodes: args.nodes,
        zones: args.zones,
        racks: args.racks,
        weights: args.weights,
        detail: if args.full {
            Detail::Full
        } else {
            Detail::Lean
        },
    };
    if let Some(folder) = &args.folder {
        return write_folder(&shape, folder).with_context(|| folder.display().to_string());
    }
    let mut out: Box<dyn Write> = match &args.file {
        Some(path) => Box::new(File::create(path).with_context(|| path.display().to_string())?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::with_capacity(1 << 20, &mut out);
    write_cluster(&shape, &mut out)?;
    out.flush()?;
    Ok(())
}
