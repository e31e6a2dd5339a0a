//! The sysctls of IPVS and of forwarding.
//!
//! Those of IPVS appear when the module `ip_vs` is loaded. All belong to one network namespace.

use std::fmt;
use std::path::Path;

use super::setting::{DesiredValue, Setting, read_number};

const ON: DesiredValue = DesiredValue::Exactly(1);

const ALWAYS: [Setting; 4] = [
    Setting {
        file: "net/ipv4/vs/conntrack",
        value: ON,
        without: "a pod that calls its own Service gets no answer",
    },
    Setting {
        file: "net/ipv4/vs/expire_nodest_conn",
        value: ON,
        without: "connections to a deleted endpoint linger instead of ending at once",
    },
    Setting {
        file: "net/ipv4/vs/expire_quiescent_template",
        value: ON,
        without: "clients with session affinity keep going to an endpoint that is leaving",
    },
    Setting {
        file: "net/ipv4/ip_forward",
        value: ON,
        without: "answers from endpoints on other nodes do not reach pods",
    },
];

/// Kernels 4.1 to 5.8 delay or lose connections that reuse a port unless this is 0. From 5.9 on the default is right,
/// and before 4.1 the sysctl does not exist (kubernetes/kubernetes#81775, #93297).
const CONN_REUSE: Setting = Setting {
    file: "net/ipv4/vs/conn_reuse_mode",
    value: DesiredValue::Exactly(0),
    without: "connections that reuse a port wait a second (kernel older than 5.9)",
};

/// Without it IPVS looks for a virtual server for the first packet of a TCP connection only (`tcp_conn_schedule` in
/// `net/netfilter/ipvs/ip_vs_proto_tcp.c`). A hash of the client's address finds the same real server on another node,
/// if a router moves an established connection there.
const SLOPPY_TCP: Setting = Setting {
    file: "net/ipv4/vs/sloppy_tcp",
    value: ON,
    without: "connections of hashing schedulers (mh, sh) end if a router moves them to this node from another one",
};

/// With 0 the sender of an ARP request is the source address of the packet that waits for it, if that is local
/// (`arp_solicit` in `net/ipv4/arp.c`): the neighbour then sends traffic for that Service address to this node.
const ANNOUNCE_OWN: Setting = Setting {
    file: "net/ipv4/conf/all/arp_announce",
    value: DesiredValue::Exactly(2),
    without: "neighbours of this node may send traffic for Service addresses to it instead of the announcing node",
};

/// Whether the kernel computes rates and adds up the counters of every virtual and real server, every two seconds
/// (`net/netfilter/ipvs/ip_vs_est.c`). Since Linux 5.15.
const RUN_ESTIMATION: &str = "net/ipv4/vs/run_estimation";

fn estimation(runs: bool) -> Setting {
    Setting {
        file: RUN_ESTIMATION,
        value: DesiredValue::Exactly(u64::from(runs)),
        without: if runs {
            "counters and rates of real servers stand still"
        } else {
            "the kernel adds up the counters of all virtual and real servers every two seconds, and packets wait"
        },
    }
}

const FORWARDING_V6: &str = "net/ipv6/conf/all/forwarding";

/// What decides which sysctls are set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// Major and minor version of the kernel.
    pub(crate) release: (u32, u32),
    /// Whether a virtual server has a scheduler that hashes the client's address.
    pub(crate) hashes: bool,
    /// Whether ARP requests must have an address of their link as the sender.
    pub(crate) announces_own: bool,
    /// Whether estimation must run; `None` leaves it.
    pub(crate) estimation: Option<bool>,
}

pub(crate) fn settings(needs: &Needs) -> impl Iterator<Item = Setting> + use<> {
    let reuse = ((4, 1)..(5, 9)).contains(&needs.release);
    let reuse = reuse.then_some(CONN_REUSE);
    let sloppy = needs.hashes.then_some(SLOPPY_TCP);
    let announce = needs.announces_own.then_some(ANNOUNCE_OWN);
    let estimation = needs.estimation.map(estimation);
    ALWAYS
        .into_iter()
        .chain(reuse)
        .chain(sloppy)
        .chain(announce)
        .chain(estimation)
}

/// Whether estimation runs; `None` if the kernel always estimates.
pub(crate) fn estimates(root: &Path) -> Option<bool> {
    read_number(root, RUN_ESTIMATION).map(|runs| runs != 0)
}

/// Forwarding of IPv6 is off. The agent only reports it: a node that forwards stops to learn addresses and routes from
/// router advertisements, unless `accept_ra` is 2 (`Documentation/networking/ip-sysctl.rst`).
#[derive(Debug)]
pub(crate) struct ForwardingWarning;

impl fmt::Display for ForwardingWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "net.ipv6.conf.all.forwarding is 0: answers from IPv6 endpoints on other nodes do not reach pods; the \
             network plugin usually sets it; if it does not, run `sysctl -w net.ipv6.conf.all.forwarding=1`, and \
             before that set accept_ra=2 on links whose routes come from router advertisements",
        )
    }
}

/// Whether IPv6 is forwarded; yes if the kernel has no IPv6.
pub(crate) fn forwards_v6(root: &Path) -> Result<(), ForwardingWarning> {
    match read_number(root, FORWARDING_V6) {
        Some(0) => Err(ForwardingWarning),
        _ => Ok(()),
    }
}
