//! The options of `dns`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use hickory_proto::rr::Name;
use telemetry::log::LogFormat;

use super::values::{self, NodeSourceArg};
use super::{AllowListArgs, OriginArgs, UpstreamArg};

/// The port of `CoreDNS`' metrics.
const METRICS_PORT: u16 = 9_153;

/// The port of `CoreDNS`' readiness.
const HEALTH_PORT: u16 = 8_181;

#[derive(Debug, Args)]
pub struct DnsArgs {
    #[command(flatten)]
    pub origin: OriginArgs,

    /// The name of this node's Node object. Clients whose address belongs to no other node count as
    /// clients of this node.
    #[arg(long, value_name = "NAME", visible_alias = "node-name", value_parser = values::node_name)]
    pub node: String,

    /// Source of other Nodes: the Node objects, or the `TopologyMap` that the controller writes.
    #[arg(long, value_enum, value_name = "SOURCE", default_value_t = NodeSourceArg::Nodes, conflicts_with = "cluster")]
    pub node_source: NodeSourceArg,

    /// The address and port to answer on, over UDP and TCP.
    #[arg(long, value_name = "IP:PORT", value_parser = listen_address)]
    pub listen: SocketAddr,

    /// The domain of the cluster.
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", value_parser = domain)]
    pub domain: Name,

    /// A server for all other names, with port 53 unless one is given, or the path of a file with
    /// `nameserver` lines, such as /etc/resolv.conf; repeat it for further servers, which are asked
    /// if one does not answer. Without it other names are refused.
    #[arg(long, value_name = "IP[:PORT]|FILE", value_parser = UpstreamArg::parse)]
    pub upstream: Vec<UpstreamArg>,

    /// Seconds for which clients may keep an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub ttl: u32,

    /// Address of /metrics, with port 9153 unless one is given; without it there are none.
    #[arg(long, value_name = "IP[:PORT]", value_parser = metrics_address)]
    pub metrics_bind_address: Option<SocketAddr>,

    /// Address of /healthz, /livez and /readyz, with port 8181 unless one is given; without it there
    /// are none.
    #[arg(long, value_name = "IP[:PORT]", value_parser = health_address)]
    pub healthz_bind_address: Option<SocketAddr>,

    /// The socket of the agent on this node. The server holds a connection to it while it can answer;
    /// when that ends, the agent at once sends no more queries to the server.
    #[arg(long, value_name = "PATH")]
    pub agent_socket: Option<PathBuf>,

    /// The addresses of this server in EndpointSlices: those of its pod. Their port is that of
    /// --listen. Without them the address of --listen is meant.
    #[arg(long, value_name = "IP,...", value_delimiter = ',')]
    pub endpoint: Vec<IpAddr>,

    /// Node labels that Service annotations may use besides zone, region and capacity; default:
    /// any.
    #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = values::label_key)]
    pub annotation_label_keys: Option<Vec<String>>,

    /// Format of log lines (to standard error).
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

impl DnsArgs {
    /// The addresses of this server in EndpointSlices.
    pub fn endpoint_addresses(&self) -> Vec<IpAddr> {
        if self.endpoint.is_empty() {
            vec![self.listen.ip()]
        } else {
            self.endpoint.clone()
        }
    }

    /// Answers have no external IPs.
    pub fn allow_lists(&self) -> AllowListArgs {
        AllowListArgs {
            annotation_label_keys: self.annotation_label_keys.clone(),
            external_ip_ranges: Vec::new(),
        }
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "write an address and a port, such as 169.254.20.10:53 or [::1]:53";
    text.parse().ok().ok_or_else(|| remedy.to_owned())
}

fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "write an address, such as 127.0.0.1, 127.0.0.1:9153 or [::1]:9153";
    values::with_port(text, METRICS_PORT).ok_or_else(|| remedy.to_owned())
}

fn health_address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "write an address, such as 127.0.0.1, 127.0.0.1:8181 or [::1]:8181";
    values::with_port(text, HEALTH_PORT).ok_or_else(|| remedy.to_owned())
}

/// The names of a domain are absolute, with or without a dot at the end.
fn domain(text: &str) -> Result<Name, String> {
    let name = Name::from_ascii(text).ok();
    let name = name.filter(|name| !name.is_root() && name.num_labels() > 0);
    let mut name = name.ok_or("write a domain, such as cluster.local")?;
    name.set_fqdn(true);
    Ok(name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_and_health_have_the_ports_of_coredns_unless_others_are_given() {
        for (found, expected) in [
            (metrics_address("127.0.0.1"), "127.0.0.1:9153"),
            (metrics_address("::1"), "[::1]:9153"),
            (health_address("0.0.0.0"), "0.0.0.0:8181"),
            (health_address("[::]:8080"), "[::]:8080"),
        ] {
            assert_eq!(found.unwrap().to_string(), expected);
        }
        assert!(metrics_address("9153").is_err() && health_address("").is_err());
    }

    #[test]
    fn a_domain_is_absolute_and_in_lower_case() {
        for (text, expected) in [
            ("cluster.local", Some("cluster.local.")),
            ("Cluster.Local.", Some("cluster.local.")),
            (".", None),
            ("", None),
            ("a..b", None),
        ] {
            let found = domain(text).ok().map(|name| name.to_ascii());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
