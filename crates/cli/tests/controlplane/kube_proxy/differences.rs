//! The intended differences between the tables of kube-proxy in ipvs mode and ours. `docs/differences.md` is made of them.

use std::fmt::Write as _;

/// A reviewed difference. `explain.rs` has the condition under which it explains a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    Scheduler,
    OutsideClients,
    InsideClients,
    InternalLocal,
    ExternalIp,
    AddressOfNode,
    Contested,
}

/// The texts of a difference.
pub(crate) struct Row {
    /// Where it shows.
    pub(crate) place: &'static str,
    pub(crate) kube_proxy: &'static str,
    pub(crate) ipvs_topo: &'static str,
    pub(crate) reason: &'static str,
}

impl Difference {
    pub(crate) const ALL: [Self; 7] = [
        Self::Scheduler,
        Self::OutsideClients,
        Self::InsideClients,
        Self::InternalLocal,
        Self::ExternalIp,
        Self::AddressOfNode,
        Self::Contested,
    ];

    pub(crate) const fn row(self) -> Row {
        match self {
            Self::Scheduler => Row {
                place: "every virtual server",
                kube_proxy: "`rr`",
                ipvs_topo: "`wrr`; without a policy every weight is 1",
                reason: "Policies need weights. With equal weights `wrr` picks in turn, as `rr` does. \
                     Session affinity with `externalTrafficPolicy: Local` uses `mh` for outside clients.",
            },
            Self::OutsideClients => Row {
                place: "`externalTrafficPolicy: Local`: one more virtual server, for a firewall mark",
                kube_proxy: "none",
                ipvs_topo: "It has the endpoints on this node and serves clients outside of the cluster. \
                     If only other nodes have one, their packets are dropped.",
                reason: "kube-proxy then sends outside clients to other nodes, and the replies return another way \
                     (kubernetes/kubernetes#93456, [decision 0018](decisions/0018-outside-clients-by-mark.md)).",
            },
            Self::InsideClients => Row {
                place: "`externalTrafficPolicy: Local`: node ports, load balancer addresses and external IPs",
                kube_proxy: "the endpoints on this node, for all clients",
                ipvs_topo: "the endpoints on all nodes, for clients inside the cluster",
                reason: "The API limits outside clients only; kube-proxy's other modes do the same.",
            },
            Self::InternalLocal => Row {
                place: "`internalTrafficPolicy: Local` of a Service that is also reachable from outside, \
                     without an endpoint on this node: the cluster IP",
                kube_proxy: "the endpoints on other nodes",
                ipvs_topo: "no real server, so connections are refused",
                reason: "The API permits endpoints on this node only.",
            },
            Self::ExternalIp => Row {
                place: "`externalIPs`",
                kube_proxy: "all",
                ipvs_topo: "none, except those that the administrator permits",
                reason: "Who may write a Service could take over any address (CVE-2020-8554).",
            },
            Self::AddressOfNode => Row {
                place: "a load balancer address or external IP that is the address of another Node",
                kube_proxy: "served",
                ipvs_topo: "not served, and reported",
                reason: "The other node would become unreachable from this one (kubernetes/kubernetes#93175).",
            },
            Self::Contested => Row {
                place: "two Services with the same address, protocol and port",
                kube_proxy: "the endpoints of one of them, which may change with each sync",
                ipvs_topo: "the endpoints of the older Service; the other one is reported",
                reason: "A new Service must not take traffic of another.",
            },
        }
    }
}

/// The page `docs/differences.md`.
pub(crate) fn page() -> String {
    let mut page = "\
# Differences from kube-proxy's tables

A test creates a hundred random clusters on a real API server, with Services of every kind.
In a guest the real kube-proxy in ipvs mode follows them, and its IPVS table is compared with that of `ipvs-topo render` for the same node.
Services have no policy of ipvs-topo.
The tables must be equal, line by line, except for these differences (`cargo xtask test --only kube-proxy`, [testing](testing.md#the-real-kube-proxy)).
In the run of 2026-11-25, kube-proxy 1.37.2 had 1,196 virtual servers and 2,295 real servers, and no other difference occurred.
The gate makes the same comparison with kube-proxy's documented rules, on 300 clusters without a guest.

| where | kube-proxy in ipvs mode | ipvs-topo | why |
| --- | --- | --- | --- |
"
    .to_owned();
    for row in Difference::ALL.map(Difference::row) {
        let cells = [row.place, row.kube_proxy, row.ipvs_topo, row.reason];
        writeln!(page, "| {} |", cells.join(" | ")).unwrap();
    }
    page.push_str(
        "\nThe clusters have no Service with a cluster IP and the label `service.kubernetes.io/headless`.\n\
         kube-proxy 1.37 serves such a Service; ipvs-topo leaves it out, as kube-proxy up to 1.36 did.\n",
    );
    page.push_str(
        "\nThis page is generated: `crates/cli/tests/controlplane/kube_proxy/differences.rs` has the texts, and the test fails \
         on a difference that is not among them, and on one that does not occur any more.\n",
    );
    page
}
