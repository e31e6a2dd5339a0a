//! The command line and its flags.
//!
//! Flags have kube-proxy's names where it has them (`--healthz-bind-address`). Other kube-proxy
//! names with the same meaning are accepted as aliases.

mod allow_lists;
mod clients;
mod dns;
mod dns_question;
mod format;
mod go_duration;
mod host;
mod locate;
mod moment;
mod origin;
mod pflag;
pub mod proxy_config;
mod strict;
mod upstream;
pub mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use cluster::ServiceSelection;
use cluster::api::{ClientNodes, Delivery, NodeSource, Relists, WatchOptions};
use cluster::clock::Clock;
use telemetry::log::LogFormat;
use topology_core::model::{NodePortAddresses, NodePortEntry};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::MarkMask;

pub use self::allow_lists::AllowListArgs;
pub use self::clients::ClientArgs;
pub use self::dns::DnsArgs;
pub use self::dns_question::DnsQuestionArgs;
pub use self::format::{RenderFormat, SimulateFormat, StatusFormat, TextFormat};
pub use self::host::HostArgs;
pub use self::locate::LocateArgs;
pub use self::moment::MomentArgs;
pub use self::origin::OriginArgs;
pub use self::pflag::words_for_clap;
use self::proxy_config::flags::ProxyFlags;
pub use self::strict::{Reader, StrictArgs};
pub use self::upstream::{DNS_PORT, UpstreamArg};
use self::values::{BindAddress, ListTrust, NodeSourceArg, Period, Verbosity};
use crate::output::print::Colour;
use crate::simulate::change;

/// The agent's default socket.
pub const DEFAULT_SOCKET: &str = "/run/ipvs-topo/agent.sock";

/// The agent's default folder for its ownership record.
pub const DEFAULT_STATE_DIR: &str = "/run/ipvs-topo";

/// kube-proxy's default of `oomScoreAdj`.
pub const OOM_SCORE_ADJ: i16 = -999;

/// Network affinity for Kubernetes Services, in the kernel's own load balancer.
#[derive(Debug, Parser)]
#[command(name = "ipvs-topo", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Colours in tables and messages: on a terminal only, always, or never.
    #[arg(long, value_enum, global = true, default_value_t = Colour::Auto, value_name = "WHEN", alias = "color")]
    pub colour: Colour,
}

const EXIT_CODES: &str =
    "Exit codes: 0 success; 1 a difference or a problem was found; 2 wrong usage or input.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the agent: keep this node's kernel in sync with the cluster.
    #[command(args_override_self = true)]
    Agent(Box<AgentArgs>),
    /// Print what a node would program, without a kernel or an agent.
    Render(RenderArgs),
    /// Show what the running agent serves, why, and its problems.
    Status(StatusArgs),
    /// Show pending kernel changes as ipvsadm commands; exit 1 if there are any.
    Diff(DiffArgs),
    /// Show stage by stage how the real servers of a Service were selected and weighted, or its
    /// answers of DNS.
    Explain(ExplainArgs),
    /// Show where the cluster's traffic goes, now and after a change that is not applied.
    Simulate(SimulateArgs),
    /// Answer DNS queries for the names of the cluster, with the endpoints that are best for the
    /// client's node.
    Dns(DnsArgs),
    /// Show the node of an address, and the labels of the node.
    Locate(LocateArgs),
}

#[derive(Debug, Clone, PartialEq, Args)]
pub struct AgentArgs {
    #[command(flatten)]
    pub origin: OriginArgs,

    /// The name of this node's Node object; default: the host name, in lower case.
    #[arg(long = "node", value_name = "NAME", visible_aliases = ["node-name", "hostname-override"], value_parser = values::node_name)]
    pub node_name: Option<String>,

    /// A `KubeProxyConfiguration` file, which overrides the other flags. The agent exits when its
    /// settings change. kube-proxy's other flags are accepted, too: docs/kube-proxy-settings.md.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub service: ServiceArgs,

    /// Source of other Nodes: the Node objects, or the `TopologyMap` that the controller writes.
    #[arg(long, value_enum, value_name = "SOURCE", default_value_t = NodeSourceArg::Nodes, conflicts_with = "cluster")]
    pub node_source: NodeSourceArg,

    /// What to do if a relist lacks more than half of the known objects: wait for a second list a
    /// minute later, or remove them at once.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ListTrust::Confirm, conflicts_with = "cluster")]
    pub relists: ListTrust,

    /// This node's addresses, one for each family; default: the `InternalIP` of its Node object,
    /// else the `ExternalIP`.
    #[arg(long, value_name = "IP", value_delimiter = ',', value_parser = values::node_ip)]
    pub node_ip: Vec<std::net::IpAddr>,

    #[command(flatten)]
    pub clients: ClientArgs,

    #[command(flatten)]
    pub host: HostArgs,

    /// Interval of comparing the whole kernel table with the desired state.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        visible_alias = "ipvs-sync-period"
    )]
    pub check_period: Period,

    /// The longest time that a draining real server keeps its connections.
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    pub drain_timeout: Period,

    /// Address of /healthz, /livez and /readyz; "" turns them off.
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:10256", value_parser = values::healthz_address)]
    pub healthz_bind_address: BindAddress,

    /// Address of /metrics, /metrics/slis, /healthz, /proxyMode and /configz; "" turns them off.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:10249", value_parser = values::metrics_address)]
    pub metrics_bind_address: BindAddress,

    /// Unix socket for `status`, `diff`, `explain` and the DNS server of this node; created with
    /// mode 0600.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,

    /// Folder of the agent's files, such as the record of its virtual servers; must be lost at
    /// reboot, as virtual servers are.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_STATE_DIR)]
    pub state_dir: PathBuf,

    /// Folder of the kernel's settings; an unprivileged pod needs a mount of it elsewhere to write
    /// them.
    #[arg(long, value_name = "PATH", default_value = "/proc/sys")]
    pub sysctl_dir: PathBuf,

    /// Adopt foreign virtual servers whose address and port a Service needs.
    #[arg(long)]
    pub adopt: bool,

    /// For tests: kill this process after this number of writes.
    #[arg(long, value_name = "WRITES", hide = true)]
    pub crash_after: Option<u64>,

    /// Format of log lines (to standard error).
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, visible_alias = "logging-format")]
    pub log_format: LogFormat,

    /// Log more: -v every kernel write, -vv everything; -v=LEVEL has kube-proxy's levels.
    #[arg(short, long, value_name = "LEVEL", action = clap::ArgAction::Append, num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = values::verbosity)]
    pub verbose: Vec<Verbosity>,

    /// Only in the file of kube-proxy, and in its flags.
    #[arg(skip)]
    pub bind_address_hard_fail: bool,

    /// The same.
    #[arg(skip)]
    pub oom_score_adj: Option<i16>,

    #[command(flatten)]
    pub proxy_flags: ProxyFlags,
}

impl AgentArgs {
    /// The node's name, which `configure` sets if no option does.
    pub fn node(&self) -> &str {
        self.node_name.as_deref().unwrap_or_default()
    }

    /// How often `-v` is given, or what the last `-v=LEVEL` stands for.
    pub fn log_level(&self) -> u8 {
        self.verbose.iter().fold(0, |level, next| next.after(level))
    }

    /// What to watch on an API server, and how to treat relists.
    pub fn watch_options(&self) -> WatchOptions {
        let own = self.node().into();
        WatchOptions {
            nodes: match self.node_source {
                NodeSourceArg::Nodes => NodeSource::Nodes { own },
                NodeSourceArg::Map => NodeSource::Map { own },
            },
            clients: ClientNodes::Own,
            delivery: Delivery::Gathered,
            relists: match self.relists {
                ListTrust::Confirm => Relists::Confirm,
                ListTrust::Believe => Relists::Believe,
            },
            allowed: self.service.allow_lists.get(),
            services: ServiceSelection::Proxied,
            clock: Clock::system(),
        }
    }
}

/// Settings that `agent`, `render`, `diff` and `explain` need for the same result.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ServiceArgs {
    /// The cluster's Service address ranges; `ServiceCIDR` objects in the input take precedence.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = values::cidr)]
    pub service_cidr: Vec<topology_core::model::IpNetwork>,

    /// The kernel scheduler of every virtual server.
    #[arg(long, value_name = "NAME", default_value_t)]
    pub scheduler: Scheduler,

    /// Node addresses where node ports are served: ranges, `primary`, `localhost` (TCP
    /// only) or `all`, which does not include `localhost`. Default: all.
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = values::node_port_entry)]
    pub nodeport_addresses: Vec<NodePortEntry>,

    /// Bits of the firewall marks that packets of outside clients get for `externalTrafficPolicy:
    /// Local`; at least two.
    #[arg(long, value_name = "MASK", default_value_t)]
    pub fwmark_mask: MarkMask,

    #[command(flatten)]
    pub allow_lists: AllowListArgs,
}

impl ServiceArgs {
    /// The selection of `--nodeport-addresses`.
    pub fn node_port_addresses(&self) -> NodePortAddresses {
        self.nodeport_addresses.iter().copied().collect()
    }
}

#[derive(Debug, Args)]
pub struct ServicesArgs {
    /// Only these Services; default: all. `svc/NAME` is in `--namespace`.
    #[arg(value_name = "NS/SVC", value_parser = values::service_name)]
    pub services: Vec<values::ServiceName>,

    /// Only the Services of this namespace; default: all. With `svc/NAME`: its namespace; default:
    /// that of the kubeconfig's context, else `default`.
    #[arg(short, long, value_name = "NS", value_parser = values::namespace)]
    pub namespace: Option<String>,
}

#[derive(Debug, Args)]
pub struct RenderArgs {
    #[command(flatten)]
    pub services: ServicesArgs,

    #[command(flatten)]
    pub origin: OriginArgs,

    /// The node whose view is computed.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: String,

    #[command(flatten)]
    pub service: ServiceArgs,

    #[command(flatten)]
    pub moment: MomentArgs,

    #[command(flatten)]
    pub strict: StrictArgs,

    /// Print the answers of this node's `ipvs-topo dns` for headless Services, and for those that are named.
    #[arg(long)]
    pub dns: bool,

    /// A table for people, sorted `ipvsadm-save -n` lines for tools, or JSON for both.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RenderFormat::Table)]
    pub output: RenderFormat,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only this Service; `svc/NAME` is in `--namespace`.
    #[arg(value_name = "NS/SVC", value_parser = values::service_name)]
    pub service: Option<values::ServiceName>,

    /// The namespace of `svc/NAME`; default: `default`.
    #[arg(short, long, value_name = "NS", value_parser = values::namespace, requires = "service")]
    pub namespace: Option<String>,

    /// A table, a wider table, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Table)]
    pub output: StatusFormat,

    /// Print again every two seconds until interrupted.
    #[arg(short, long)]
    pub watch: bool,

    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
}

/// Compares the kernel with the cluster if `--cluster`, `--kubeconfig` or `--node` is given,
/// otherwise with the agent's desired state.
#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    pub origin: OriginArgs,

    /// The node whose view is computed.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: Option<String>,

    #[command(flatten)]
    pub service: ServiceArgs,

    /// With `--node`: folder of the ownership record of the agent's virtual servers.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_STATE_DIR, requires = "node")]
    pub state_dir: PathBuf,

    #[command(flatten)]
    pub strict: StrictArgs,

    /// Text for people, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TextFormat::Text)]
    pub output: TextFormat,

    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, conflicts_with_all = ["OriginArgs", "node"])]
    pub socket: PathBuf,
}

/// Without a cluster and without `--node` the running agent is queried.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The Service, and the name or number of one of its ports; default: all ports. `svc/NAME` is
    /// in `--namespace`.
    #[arg(value_name = "NS/SVC[:PORT]", value_parser = values::service_port)]
    pub target: values::ServicePortArg,

    /// The namespace of `svc/NAME`; default: that of the kubeconfig's context, else `default`.
    #[arg(short, long, value_name = "NS", value_parser = values::namespace)]
    pub namespace: Option<String>,

    #[command(flatten)]
    pub origin: OriginArgs,

    /// The node whose view is computed; with --dns, the node of the server that the client asks.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: Option<String>,

    #[command(flatten)]
    pub dns: DnsQuestionArgs,

    #[command(flatten)]
    pub service: ServiceArgs,

    #[command(flatten)]
    pub moment: MomentArgs,

    #[command(flatten)]
    pub strict: StrictArgs,

    /// Text for people, or JSON.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TextFormat::Text)]
    pub output: TextFormat,

    /// The agent's socket.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, conflicts_with_all = ["OriginArgs", "node", "dns"])]
    pub socket: PathBuf,
}

#[derive(Debug, Args)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub services: ServicesArgs,

    #[command(flatten)]
    pub origin: OriginArgs,

    /// Add the policies and drains of a file: `TopologyPolicy`, `ClusterTopologyPolicy`,
    /// `TopologyDrain`.
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,

    /// Set an annotation of a Service (`'shop/cart:weights=zone=90,*=10'`, quoted for the shell),
    /// remove it (`shop/cart:weights=`), or set `shop/cart:trafficDistribution=PreferSameZone`.
    #[arg(long, value_name = "NS/SVC:ANNOTATION=VALUE", value_parser = change::set)]
    pub set: Vec<change::Set>,

    /// Drain every Node with this label: `zone=b`, or `example.com/rack=r1,r2`.
    #[arg(long, value_name = "LABEL=VALUE", value_parser = change::drain)]
    pub drain: Vec<change::DrainOf>,

    /// Set the number of ready endpoints of a Service in a zone: `shop/cart=b:5`.
    #[arg(long, value_name = "NS/SVC=ZONE:COUNT", value_parser = change::scale)]
    pub scale: Vec<change::Scale>,

    #[command(flatten)]
    pub allow_lists: AllowListArgs,

    /// The price of a GiB from one zone to another, in any currency.
    #[arg(long, value_name = "PER_GIB", value_parser = change::price)]
    pub price: Option<f64>,

    /// Where traffic starts: equally on each Node, by allocatable CPU, or by a file of measured
    /// rates.
    #[arg(long, value_name = "nodes|cpu|FILE", default_value = "nodes")]
    pub demand: String,

    #[command(flatten)]
    pub moment: MomentArgs,

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
    fn every_command_and_every_flag_of_the_agent_is_documented() {
        let manual = concat!(
            include_str!("../../../docs/operations.md"),
            include_str!("../../../docs/agent.md")
        );
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            let name = format!("`ipvs-topo {}`", command.get_name());
            assert!(
                manual.contains(&name),
                "docs/operations.md does not describe {name}"
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
                "docs/agent.md does not describe --{name}"
            );
        }
    }
}
