//! A node with pods as network namespaces. The current namespace is the node, and each pod has its
//! own.
//!
//! Each pod has a veth pair with one route, as with Calico or the `ptp` plugin, so every packet
//! between two pods passes the node's IP layer. Dropping the lab deletes it.

#[path = "lab/connection.rs"]
mod connection;
#[path = "lab/monitor.rs"]
mod monitor;
#[path = "lab/place.rs"]
mod place;
#[path = "lab/process.rs"]
mod process;
#[path = "lab/shell.rs"]
mod shell;
#[path = "lab/system_calls.rs"]
mod system_calls;

use std::net::IpAddr;

pub(crate) use connection::{other_end, talk, try_connect};
pub(crate) use monitor::Monitor;
pub(crate) use place::Place;
pub(crate) use process::Process;
use shell::{batch, ip};
pub(crate) use shell::{sh, succeeds, wait_until, wait_within};
pub(crate) use system_calls::SystemCalls;

pub(crate) const NODE_V4: &str = "192.168.10.11";
pub(crate) const NODE_V6: &str = "fd00:10::11";
/// A host on the node's network, outside of the cluster.
pub(crate) const OUTSIDER_V4: &str = "192.168.10.1";
pub(crate) const OUTSIDER_V6: &str = "fd00:10::1";

const GATEWAY_V4: &str = "169.254.1.1";
const GATEWAY_V6: &str = "fe80::1";

#[derive(Debug, Default)]
pub(crate) struct Lab {
    pods: u8,
    namespaces: Vec<String>,
}

impl Lab {
    /// A node with an address of each family on `eth0`, and a host at the other end of the link.
    pub(crate) fn new() -> Self {
        let mut lab = Self::default();
        let outside = lab.namespace("outside");
        sh(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
            net.ipv4.conf.all.rp_filter=0",
        );
        ip(
            &[],
            &format!(
                "link set lo up
                link add eth0 type veth peer name eth0 netns {outside}
                addr add {NODE_V4}/24 dev eth0
                addr add {NODE_V6}/64 dev eth0 nodad
                link set eth0 up
                route add default via {OUTSIDER_V4}
                route add default via {OUTSIDER_V6}"
            ),
        );
        ip(
            &["-n", &outside],
            &format!(
                "link set lo up
                addr add {OUTSIDER_V4}/24 dev eth0
                addr add {OUTSIDER_V6}/64 dev eth0 nodad
                link set eth0 up"
            ),
        );
        lab
    }

    /// The namespace of the outside host.
    pub(crate) fn outside(&self) -> &str {
        self.namespaces.first().expect("made first")
    }

    /// The outside host, for commands that run there.
    pub(crate) fn outsider(&self) -> Place {
        Place {
            netns: self.outside().to_owned(),
            v4: OUTSIDER_V4.parse().unwrap(),
            v6: OUTSIDER_V6.parse().unwrap(),
        }
    }

    /// Routes packets of the outside host for `ranges` to the node.
    pub(crate) fn route_from_outside(&self, ranges: &[&str]) {
        let lines = ranges.iter().map(|range| {
            let node = if range.contains(':') {
                NODE_V6
            } else {
                NODE_V4
            };
            format!("route add {range} via {node}\n")
        });
        ip(&["-n", self.outside()], &lines.collect::<String>());
    }

    /// The next pod: `10.244.1.1`, `fd00:10:244:1::1` and so on.
    pub(crate) fn pod(&mut self) -> Place {
        self.pods += 1;
        let number = self.pods;
        let place = Place {
            netns: self.namespace(&format!("pod{number}")),
            v4: format!("10.244.1.{number}").parse().unwrap(),
            v6: format!("fd00:10:244:1::{number:x}").parse().unwrap(),
        };
        let Place { netns, v4, v6 } = &place;
        ip(
            &[],
            &format!(
                "link add pod{number} type veth peer name eth0 netns {netns}
                addr add {GATEWAY_V4}/32 dev pod{number}
                addr add {GATEWAY_V6}/128 dev pod{number} nodad
                link set pod{number} up
                route add {v4}/32 dev pod{number}
                route add {v6}/128 dev pod{number}"
            ),
        );
        inside_pod(netns, *v4, *v6);
        place
    }

    /// A pod of another node, behind the outside host: `10.244.2.1`, `fd00:10:244:2::1` and so on.
    pub(crate) fn pod_elsewhere(&mut self, number: u8) -> Place {
        let outside = self.outside().to_owned();
        let place = Place {
            netns: self.namespace(&format!("elsewhere{number}")),
            v4: format!("10.244.2.{number}").parse().unwrap(),
            v6: format!("fd00:10:244:2::{number:x}").parse().unwrap(),
        };
        let Place { netns, v4, v6 } = &place;
        sh(&format!(
            "ip netns exec {outside} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
        ));
        // The node sends such packets by its default route.
        ip(
            &["-n", &outside],
            &format!(
                "link add pod{number} type veth peer name eth0 netns {netns}
                addr add {GATEWAY_V4}/32 dev pod{number}
                addr add {GATEWAY_V6}/128 dev pod{number} nodad
                link set pod{number} up
                route add {v4}/32 dev pod{number}
                route add {v6}/128 dev pod{number}"
            ),
        );
        inside_pod(netns, *v4, *v6);
        place
    }

    /// A container behind a bridge of this node, as Docker makes it: its address, and the bridge's as its gateway.
    pub(crate) fn container(&mut self, bridge: &str, gateway: &str, address: &str) -> Place {
        let netns = self.namespace("container");
        let (own, bits) = gateway.split_once('/').expect("with a prefix length");
        ip(
            &[],
            &format!(
                "link add {bridge} type bridge
                addr add {gateway} dev {bridge}
                link set {bridge} up
                link add port0 type veth peer name eth0 netns {netns}
                link set port0 master {bridge} up"
            ),
        );
        ip(
            &["-n", &netns],
            &format!(
                "link set lo up
                addr add {address}/{bits} dev eth0
                link set eth0 up
                route add default via {own}"
            ),
        );
        Place {
            netns,
            v4: address.parse().unwrap(),
            v6: std::net::Ipv6Addr::LOCALHOST.into(),
        }
    }

    fn namespace(&mut self, name: &str) -> String {
        // Unique names: namespaces belong to the whole guest, and other tests may run.
        let name = format!("{name}-{}", std::process::id());
        sh(&format!("ip netns add {name}"));
        self.namespaces.push(name.clone());
        name
    }
}

/// Configures the namespace of a pod.
fn inside_pod(netns: &str, v4: IpAddr, v6: IpAddr) {
    ip(
        &["-n", netns],
        &format!(
            "link set lo up
            addr add {v4}/32 dev eth0
            addr add {v6}/128 dev eth0 nodad
            link set eth0 up
            route add {GATEWAY_V4}/32 dev eth0
            route add default via {GATEWAY_V4} dev eth0
            route add default via {GATEWAY_V6} dev eth0"
        ),
    );
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Links first, because the kernel deletes a namespace's links later, and the next lab uses
        // the same names.
        let pods = (1..=self.pods).map(|pod| format!("link delete pod{pod}\n"));
        let names = self.namespaces.iter();
        let names = names.map(|name| format!("netns delete {name}\n"));
        let lines: String = pods.chain(names).collect();
        // A test may have deleted some of it.
        drop(batch(&["-force"], &format!("link delete eth0\n{lines}")));
    }
}
