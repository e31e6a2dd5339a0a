//! The command line: what may be typed, and what each flag means.
//!
//! Names follow kube-proxy where it has one (`--healthz-bind-address`, `--metrics-bind-address`); the names of
//! kube-proxy that mean the same as one of ours are accepted as aliases.

mod annotations;
mod format;
mod moment;
mod origin;
pub mod proxy_config;
mod strict;
pub mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use cluster::api::{NodeSource, Relists, WatchOptions};
use cluster::clock::Clock;
use telemetry::log::LogFormat;
use topology_core::scheduler::Scheduler;

pub use self::annotations::AnnotationArgs;
pub use self::format::{RenderFormat, SimulateFormat, StatusFormat, TextFormat};
pub use self::moment::MomentArgs;
pub use self::origin::OriginArgs;
pub use self::strict::{Reader, StrictArgs};
use self::values::{BindAddress, ListTrust, NodesFrom, Period};
use crate::output::print::Colour;
use crate::simulate::change;

/// Where the agent listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/ipvs-topo/agent.sock";

/// Where the agent keeps its record unless told otherwise.
pub const DEFAULT_STATE_DIR: &str = "/run/ipvs-topo";

/// Network affinity for Kubernetes Services, in the kernel's own load balancer.
#[derive(Debug, Parser)]
#[command(name = "ipvs-topo", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Colours in tables and messages: on a terminal only, always, or never.
    #[arg(long, value_enum, global = true, default_value_t = Colour::Auto, value_name = "WHEN", alias = "color")]
    pub colour: Colour,
}

const EXIT_CODES: &str =
    "Exit codes: 0 fine; 1 a difference or trouble was found; 2 wrong usage or input.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon: keep this node's kernel equal to what the cluster says.
    Agent(Box<AgentArgs>),
    /// Print what a node would program, without a kernel and without an agent.
    Render(RenderArgs),
    /// Show what the running agent serves, why, and what it cannot do.
    Status(StatusArgs),
    /// Show what would change in the kernel, as ipvsadm commands; exit 1 if anything would.
    Diff(DiffArgs),
    /// Tell stage by stage how the real servers of one Service were chosen and weighted.
    Explain(ExplainArgs),
    /// Show where the whole cluster's traffic goes, before and after a change, without making it.
    Simulate(SimulateArgs),
}

/// `ipvs-topo agent`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct AgentArgs {
    /// Where the cluster is read from, and followed.
    #[command(flatten)]
    pub origin: OriginArgs,

    /// This node's name, as its Node object has it.
    #[arg(long = "node", value_name = "NAME", visible_aliases = ["node-name", "hostname-override"], value_parser = values::node_name)]
    pub node_name: String,

    /// A `KubeProxyConfiguration`; what it says counts, whatever the other flags say. The agent ends when that changes.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// What every virtual server gets, and the node's addresses.
    #[command(flatten)]
    pub service: ServiceArgs,

    /// Where other Nodes are known from: the Nodes themselves, or the map that the controller writes.
    #[arg(long, value_enum, value_name = "SOURCE", default_value_t = NodesFrom::Nodes)]
    pub node_source: NodesFrom,

    /// What a list is worth that was read again and lacks more than half of what is
    /// known: what it lacks goes once a second list, a minute later, lacks it too, or at once.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ListTrust::Confirm)]
    pub relists: ListTrust,

    /// This node's own address, one for each family; default: the `InternalIP` addresses of its Node object.
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = values::node_ip)]
    pub node_ip: Vec<std::net::IpAddr>,

    /// How often the whole kernel table is compared with what it should hold.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        visible_alias = "ipvs-sync-period"
    )]
    pub check_period: Period,

    /// How long a leaving real server may keep its connections.
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    pub drain_timeout: Period,

    /// Where /healthz and /livez are served; "" turns them off.
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:10256", value_parser = values::healthz_address)]
    pub healthz_bind_address: BindAddress,

    /// Where /metrics, /proxyMode and /configz are served; "" turns them off.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:10249", value_parser = values::metrics_address)]
    pub metrics_bind_address: BindAddress,

    /// Unix socket for `status`, `diff` and `explain`; made with mode 0600.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,

    /// Where the record of our own virtual servers lives; lost at reboot, as they are.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_STATE_DIR)]
    pub state_dir: PathBuf,

    /// Where the kernel's settings are; a pod that is not privileged can write them through a mount elsewhere only.
    #[arg(long, value_name = "PATH", default_value = "/proc/sys")]
    pub sysctl_dir: PathBuf,

    /// Take over virtual servers of others whose address and port the cluster asks for.
    #[arg(long)]
    pub adopt: bool,

    /// For tests: kill this process after so many writes.
    #[arg(long, value_name = "WRITES", hide = true)]
    pub crash_after: Option<u64>,

    /// How log lines are written (to standard error).
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, visible_alias = "logging-format")]
    pub log_format: LogFormat,

    /// Log more: -v every kernel write, -vv everything.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl AgentArgs {
    /// What is followed of an API server, and how far it is believed.
    pub fn watch_options(&self) -> WatchOptions {
        let own = self.node_name.as_str().into();
        WatchOptions {
            nodes: match self.node_source {
                NodesFrom::Nodes => NodeSource::Nodes { own },
                NodesFrom::Map => NodeSource::Map { own },
            },
            relists: match self.relists {
                ListTrust::Confirm => Relists::Confirm,
                ListTrust::Believe => Relists::Believe,
            },
            annotation_keys: self.service.annotations.label_keys(),
            clock: Clock::system(),
        }
    }
}

/// What `agent`, `render`, `diff` and `explain` must agree on to reach the same result.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ServiceArgs {
    /// The cluster's Service address ranges; `ServiceCIDR` objects in the input win.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = values::cidr)]
    pub service_cidr: Vec<topology_core::model::IpNetwork>,

    /// The kernel scheduler of every virtual server.
    #[arg(
        long,
        value_name = "NAME",
        default_value_t,
        visible_alias = "ipvs-scheduler"
    )]
    pub scheduler: Scheduler,

    /// What annotations may use.
    #[command(flatten)]
    pub annotations: AnnotationArgs,
}

/// The Services that `render` and `simulate` are about.
#[derive(Debug, Args)]
pub struct ServicesArgs {
    /// Only these Services; all if none is named. `svc/NAME` is one of `--namespace`.
    #[arg(value_name = "NS/SVC", value_parser = values::service_name)]
    pub services: Vec<values::ServiceName>,

    /// Only the Services of this namespace; default: those of all. For `svc/NAME`: where it is; default: the namespace of
    /// the kubeconfig's context, else `default`.
    #[arg(short, long, value_name = "NS", value_parser = values::namespace)]
    pub namespace: Option<String>,
}

/// A cluster read from files, seen from one node.
#[derive(Debug, Args)]
pub struct RenderArgs {
    /// Which Services.
    #[command(flatten)]
    pub services: ServicesArgs,

    /// Where the cluster is read from.
    #[command(flatten)]
    pub origin: OriginArgs,

    /// The node to see the cluster from.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: String,

    /// What the agent of that node would be started with.
    #[command(flatten)]
    pub service: ServiceArgs,

    /// With which clock.
    #[command(flatten)]
    pub moment: MomentArgs,

    /// Whether warnings are errors.
    #[command(flatten)]
    pub strict: StrictArgs,

    /// A table for people, `ipvsadm-save -n` lines (sorted) for tools, or JSON for both.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RenderFormat::Table)]
    pub output: RenderFormat,
}

/// `ipvs-topo status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only this Service; `svc/NAME` is one of `--namespace`.
    #[arg(value_name = "NS/SVC", value_parser = values::service_name)]
    pub service: Option<values::ServiceName>,

    /// The namespace of a Service that is given as `svc/NAME`; default: `default`.
    #[arg(short, long, value_name = "NS", value_parser = values::namespace, requires = "service")]
    pub namespace: Option<String>,

    /// A table, a wider table, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Table)]
    pub output: StatusFormat,

    /// Show again every two seconds until interrupted.
    #[arg(short, long)]
    pub watch: bool,

    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

/// `ipvs-topo diff`: with `--cluster` or `--kubeconfig`, that against this machine's kernel; else the agent's wish against it.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Where the cluster is read from; without any of these and without `--node` the running agent is asked.
    #[command(flatten)]
    pub origin: OriginArgs,

    /// The node to see the cluster from.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: Option<String>,

    /// What the agent of that node would be started with.
    #[command(flatten)]
    pub service: ServiceArgs,

    /// With `--cluster`: where the record of our own virtual servers lives.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_STATE_DIR)]
    pub state_dir: PathBuf,

    /// Whether warnings are errors.
    #[command(flatten)]
    pub strict: StrictArgs,

    /// Lines for people, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TextFormat::Text)]
    pub output: TextFormat,

    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, conflicts_with_all = ["OriginArgs", "node"])]
    pub socket: PathBuf,
}

/// `ipvs-topo explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The Service, and one of its ports (name or number) if not all; `svc/NAME` is one of `--namespace`.
    #[arg(value_name = "NS/SVC[:PORT]", value_parser = values::service_port)]
    pub target: values::ServicePortArg,

    /// The namespace of a Service that is given as `svc/NAME`; default: that of the kubeconfig's context, else `default`.
    #[arg(short, long, value_name = "NS", value_parser = values::namespace)]
    pub namespace: Option<String>,

    /// Where the cluster is read from; without any of these and without `--node` the running agent is asked.
    #[command(flatten)]
    pub origin: OriginArgs,

    /// The node to see the cluster from.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: Option<String>,

    /// What the agent of that node would be started with.
    #[command(flatten)]
    pub service: ServiceArgs,

    /// With which clock.
    #[command(flatten)]
    pub moment: MomentArgs,

    /// Whether warnings are errors.
    #[command(flatten)]
    pub strict: StrictArgs,

    /// Words for people, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TextFormat::Text)]
    pub output: TextFormat,

    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, conflicts_with_all = ["OriginArgs", "node"])]
    pub socket: PathBuf,
}

/// `ipvs-topo simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Which Services.
    #[command(flatten)]
    pub services: ServicesArgs,

    /// Where the cluster is read from.
    #[command(flatten)]
    pub origin: OriginArgs,

    /// Add the policies and drains of a file: `TopologyPolicy`, `ClusterTopologyPolicy`, `TopologyDrain`.
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,

    /// Give a Service another annotation (`'shop/cart:weights=zone=90,*=10'`, quoted for the shell), none
    /// (`shop/cart:weights=`), or another `shop/cart:trafficDistribution=PreferSameZone`.
    #[arg(long, value_name = "NS/SVC:ANNOTATION=VALUE", value_parser = change::set)]
    pub set: Vec<change::Set>,

    /// Drain every Node with this label: `zone=b`, or `example.com/rack=r1,r2`.
    #[arg(long, value_name = "LABEL=VALUE", value_parser = change::drain)]
    pub drain: Vec<change::DrainOf>,

    /// Give a Service so many ready endpoints in a zone: `shop/cart=b:5`.
    #[arg(long, value_name = "NS/SVC=ZONE:COUNT", value_parser = change::scale)]
    pub scale: Vec<change::Scale>,

    /// What annotations may use.
    #[command(flatten)]
    pub annotations: AnnotationArgs,

    /// What a GiB from one zone to another costs, in any currency.
    #[arg(long, value_name = "PER_GIB", value_parser = change::price)]
    pub price: Option<f64>,

    /// Where traffic starts: the same on each Node, by allocatable CPU, or as a file of measured rates has it.
    #[arg(long, value_name = "nodes|cpu|FILE", default_value = "nodes")]
    pub demand: String,

    /// With which clock.
    #[command(flatten)]
    pub moment: MomentArgs,

    /// Whether warnings are errors.
    #[command(flatten)]
    pub strict: StrictArgs,

    /// Tables for people, JSON for programs, or one HTML page for a browser.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = SimulateFormat::Table)]
    pub output: SimulateFormat,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_every_flag_of_the_agent_stands_in_the_operations_manual() {
        let manual = concat!(
            include_str!("../../../docs/operations.md"),
            include_str!("../../../docs/agent.md")
        );
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            let name = format!("`ipvs-topo {}`", command.get_name());
            assert!(
                manual.contains(&name),
                "docs/operations.md does not say what {name} does"
            );
        }
        let agent = cli.find_subcommand("agent").unwrap();
        let flags = agent.get_arguments().filter(|flag| !flag.is_hide_set());
        for name in flags
            .filter_map(clap::Arg::get_long)
            .filter(|name| *name != "verbose")
        {
            assert!(
                manual.contains(&format!("`--{name}")),
                "docs/agent.md does not say what --{name} means"
            );
        }
    }
}
