//! Defines the options of `cargo xtask bench`.

use std::path::PathBuf;

use guest_wire::{ProxyKind, ServiceType};
use testbed::paths;
use testbed::vm::kernel;
use testbed::vm::machine::GuestClock;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("updates").args(["kubernetes", "pods"]).multiple(true)))]
pub(crate) struct Args {
    /// Numbers of virtual servers, smallest first; each has 10 real servers.
    #[arg(
        long,
        value_delimiter = ',',
        conflicts_with = "nodes",
        default_value = "1000,5000,10000",
        default_value_ifs = [("kubernetes", "true", "1000,10000"), ("dns", "true", "10000")]
    )]
    pub(super) sizes: Vec<u32>,
    /// Compare with kube-proxy on a real API server, instead of with the bare kernel.
    #[arg(long)]
    pub(super) kubernetes: bool,
    /// Compare the DNS server with `CoreDNS` on a real API server.
    #[arg(long, conflicts_with_all = ["kubernetes", "nodes"])]
    pub(super) dns: bool,
    /// With --kubernetes: the type of every Service.
    #[arg(
        long,
        value_name = "TYPE",
        value_enum,
        requires = "kubernetes",
        default_value = "ClusterIP",
        default_value_if("traffic", "true", "LoadBalancer")
    )]
    pub(super) service_type: ServiceType,
    /// With --kubernetes: measure connections and packets through a cluster IP and a node port, instead of rolling updates.
    #[arg(long, requires = "kubernetes")]
    pub(super) traffic: bool,
    /// Measure what an agent receives in an hour of heartbeats of this number of Nodes, read from the Nodes and from the map.
    #[arg(long, value_name = "COUNT", conflicts_with = "kubernetes")]
    pub(super) nodes: Option<u64>,
    /// With --nodes: measure the cost of PodMaps and PodLocators for this number of Pods instead.
    #[arg(long, value_name = "COUNT", requires = "nodes")]
    pub(super) pods: Option<u64>,
    /// With --nodes: number of heartbeats of each Node to send, of the twelve in an hour.
    #[arg(
        long,
        default_value_t = 12,
        requires = "nodes",
        conflicts_with = "pods"
    )]
    pub(super) heartbeats: u64,
    /// With --kubernetes: measure only these.
    #[arg(
        long = "rivals",
        value_name = "RIVALS",
        value_enum,
        value_delimiter = ',',
        requires = "kubernetes",
        default_value = "ipvs-topo,ipvs,nftables"
    )]
    pub(super) proxies: Vec<ProxyKind>,
    /// With --kubernetes: seconds of rolling updates for ipvs-topo; with --pods: seconds in which Pods are replaced.
    #[arg(
        long,
        default_value = "60",
        default_value_if("traffic", "true", "0"),
        requires = "updates",
        conflicts_with = "traffic"
    )]
    pub(super) churn: u64,
    /// Number of repetitions of the measurements that alternate; one with --kubernetes.
    #[arg(long, default_value_t = 3, conflicts_with_all = ["kubernetes", "nodes"])]
    pub(super) repeat: u32,
    /// Number of endpoints that leave and come back at each size.
    #[arg(long, default_value_t = 25, conflicts_with = "nodes")]
    pub(super) changes: u32,
    /// The kernel to measure on.
    #[arg(long, default_value = "6.12", conflicts_with_all = ["dns", "nodes"])]
    pub(super) kernel: kernel::Line,
    /// The time base of the guest's clock; fixed with --kubernetes.
    #[arg(
        long = "pace",
        value_name = "PACE",
        value_enum,
        default_value = "counted",
        conflicts_with_all = ["kubernetes", "dns", "nodes"]
    )]
    pub(super) clock: GuestClock,
    /// Time limit in minutes.
    #[arg(long, default_value_t = 30, conflicts_with_all = ["dns", "nodes"])]
    pub(super) limit: u64,
    /// Do not measure: use the readings of an earlier run.
    #[arg(long, value_name = "FILE")]
    pub(super) from: Option<PathBuf>,
    /// The folder for bench.json and bench.svg.
    #[arg(long, value_name = "FOLDER", default_value_os_t = paths::root().join("docs"))]
    pub(super) out: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Parser)]
    struct Bench {
        #[command(flatten)]
        args: super::Args,
    }

    fn parse(options: &str) -> Result<super::Args, clap::error::ErrorKind> {
        let words = std::iter::once("bench").chain(options.split_whitespace());
        let bench = Bench::try_parse_from(words);
        bench.map(|bench| bench.args).map_err(|error| error.kind())
    }

    #[test]
    fn an_option_without_effect_is_refused() {
        for options in [
            "--churn 10",
            "--kubernetes --traffic --churn 10",
            "--dns --churn 10",
            "--service-type NodePort",
            "--rivals ipvs",
            "--heartbeats 3",
            "--nodes 10 --pods 10 --heartbeats 3",
            "--nodes 10 --sizes 10",
            "--nodes 10 --changes 3",
            "--nodes 10 --churn 3",
            "--kubernetes --repeat 3",
            "--kubernetes --pace real",
            "--dns --kernel 6.1",
            "--dns --limit 10",
        ] {
            assert!(parse(options).is_err(), "{options}");
        }
    }

    #[test]
    fn options_of_a_measurement_are_accepted() {
        let churn = |options: &str| parse(options).map(|args| args.churn);
        assert_eq!(churn(""), Ok(60));
        assert_eq!(churn("--kubernetes --churn 10 --changes 3"), Ok(10));
        assert_eq!(churn("--kubernetes --traffic --limit 100"), Ok(0));
        assert_eq!(churn("--nodes 10 --pods 10 --churn 180"), Ok(180));
        assert_eq!(churn("--dns --sizes 10 --repeat 1 --changes 5"), Ok(60));
        assert_eq!(churn("--pace real --repeat 1 --kernel 6.1"), Ok(60));
        assert_eq!(churn("--nodes 10 --heartbeats 3"), Ok(60));
    }
}
