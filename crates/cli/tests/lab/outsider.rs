//! A client outside of the cluster, in the nodes' own network.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{NODES, on_node, outside, text, variable};

/// Its address, which is also that of the API server.
pub(crate) const ADDRESS: &str = "192.0.2.1";

/// Its link.
const LINK: &str = "br0";

/// ARP requests, one a second, each to every node.
const REQUESTS: &str = "4";

/// Connects to ADDRESS ten times, and prints each answer.
const CONNECT: &str = "for i in 1 2 3 4 5 6 7 8 9 10; do \
    timeout 5 bash -c 'exec 3<>/dev/tcp/ADDRESS/80 && cat <&3' || echo failed; done";

/// The answer of a pod that serves with `--peer`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerAnswer {
    /// The node of the pod; `failed` without an answer.
    pub(crate) node: String,
    /// The client's address that the pod saw.
    pub(crate) client: String,
}

/// Asks for hardware addresses.
pub(crate) struct ArpClient {
    /// The nodes by the hardware address of their link.
    nodes: BTreeMap<String, &'static str>,
}

impl ArpClient {
    pub(crate) fn new() -> Self {
        let nodes = NODES.map(|node| {
            let address = on_node(node, "cat /sys/class/net/eth0/address");
            (address.trim().to_owned(), node)
        });
        Self {
            nodes: nodes.into(),
        }
    }

    /// The nodes that answer ARP requests for `address`.
    pub(crate) fn answering(&self, address: &str) -> BTreeSet<&'static str> {
        let broadcast = ["arping", "-b", "-c", REQUESTS, "-I", LINK, address];
        let mut arping = outside(&variable("LAB_BUSYBOX"));
        // It fails without an answer.
        let printed = text(&arping.args(broadcast).output().unwrap());
        assert!(printed.starts_with("ARPING"), "{printed}");
        let replies = printed.lines().filter_map(|line| {
            let (_, rest) = line.split_once(" reply from ")?;
            let (_, rest) = rest.split_once('[')?;
            Some(rest.split_once(']')?.0)
        });
        let node = |address| *self.nodes.get(address).unwrap();
        replies.map(node).collect()
    }
}

/// The answers to ten connections.
pub(crate) fn connect(address: &str) -> Vec<PeerAnswer> {
    let mut bash = outside("bash");
    bash.args(["-c", &CONNECT.replace("ADDRESS", address)]);
    let printed = text(&bash.output().unwrap());
    let answers = printed.lines().map(|line| {
        let (node, client) = line.split_once(' ').unwrap_or((line, ""));
        PeerAnswer {
            node: node.to_owned(),
            client: client.to_owned(),
        }
    });
    answers.collect()
}
