//! Defines the options of `cargo xtask bench`.

use std::path::PathBuf;

use guest_wire::ProxyKind;
use testbed::paths;
use testbed::vm::kernel;
use testbed::vm::machine::Pace;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Numbers of virtual servers, smallest first; each has 10 real servers.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,5000,10000",
        default_value_if("kubernetes", "true", "1000,10000")
    )]
    pub(super) sizes: Vec<u32>,
    /// Measure beside kube-proxy, on a real API server, instead of against the bare kernel.
    #[arg(long)]
    pub(super) kubernetes: bool,
    /// Measure what an agent receives in an hour of heartbeats of so many Nodes, read from the Nodes and from the map.
    #[arg(long, value_name = "COUNT", conflicts_with = "kubernetes")]
    pub(super) nodes: Option<u64>,
    /// With --nodes: heartbeats of each Node that are sent, of the twelve that an hour has.
    #[arg(long, default_value_t = 12)]
    pub(super) heartbeats: u64,
    /// With --kubernetes: measure only these.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "ipvs-topo,ipvs,nftables"
    )]
    pub(super) rivals: Vec<ProxyKind>,
    /// With --kubernetes: seconds of rolling updates for ipvs-topo.
    #[arg(long, default_value_t = 60)]
    pub(super) churn: u64,
    /// How many times what alternates is measured.
    #[arg(long, default_value_t = 3)]
    pub(super) repeat: u32,
    /// How many endpoints leave and come back at each size.
    #[arg(long, default_value_t = 25)]
    pub(super) changes: u32,
    /// The kernel to measure on.
    #[arg(long, default_value = "6.12")]
    pub(super) kernel: kernel::Line,
    /// What the guest's clock goes by.
    #[arg(long, value_enum, default_value = "counted")]
    pub(super) pace: Pace,
    /// Minutes it may take.
    #[arg(long, default_value_t = 30)]
    pub(super) limit: u64,
    /// Do not measure: draw and judge the readings of an earlier run.
    #[arg(long, value_name = "FILE")]
    pub(super) from: Option<PathBuf>,
    /// Where bench.json and bench.svg go.
    #[arg(long, value_name = "FOLDER", default_value_os_t = paths::root().join("docs"))]
    pub(super) out: PathBuf,
}
