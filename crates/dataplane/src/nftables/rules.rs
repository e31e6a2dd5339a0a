//! The chains and rules of our tables.

use super::table::{Chain, Hook, Rule, TableFamily};

/// After IPVS, whose input hook is `NF_IP_PRI_NAT_SRC - 1` = 99 (`ip_vs_ops4` in
/// `net/netfilter/ipvs/ip_vs_core.c`), and after conntrack's nat at 100.
const AFTER_IPVS: i32 = 150;
/// `NF_IP_PRI_FILTER`: before IPVS in the input hook.
const FILTER: i32 = 0;
/// `NF_IP_PRI_MANGLE`: after conntrack and before IPVS in the output hook (`NF_IP_PRI_NAT_DST + 1` = -99).
const MANGLE: i32 = -150;
/// `NF_IP_PRI_NAT_SRC` (`include/uapi/linux/netfilter_ipv4.h`), the priority for masquerading.
const SOURCE_NAT: i32 = 100;

/// The chains of a family's table, in a fixed order.
pub(super) fn chains(family: TableFamily) -> Vec<Chain> {
    match family {
        TableFamily::Ip => packets(
            "ip",
            "icmp type echo-request accept",
            "reject with icmp port-unreachable",
        ),
        TableFamily::Ip6 => packets(
            "ip6",
            "icmpv6 type echo-request accept",
            "reject with icmpv6 port-unreachable",
        ),
        TableFamily::Arp => arp(),
    }
}

fn packets(ip: &str, echo: &str, refuse: &str) -> Vec<Chain> {
    let input = Hook {
        kind: "filter",
        point: "input",
        priority: AFTER_IPVS,
    };
    let nat = Hook {
        kind: "nat",
        point: "postrouting",
        priority: SOURCE_NAT,
    };
    let masquerade = |set: &str| {
        format!("{ip} saddr . {ip} daddr @hairpin ct original {ip} daddr @{set} masquerade")
    };
    vec![
        Chain {
            name: "unclaimed",
            hook: None,
            rules: vec![
                Rule::new(echo, "echo is answered"),
                Rule::new(
                    "meta l4proto tcp reject with tcp reset",
                    "no virtual server took it",
                ),
                Rule::new(refuse, "no virtual server took it"),
            ],
        },
        Chain {
            name: "input",
            hook: Some(input),
            rules: vec![
                Rule::new(
                    format!("{ip} daddr @own accept"),
                    "an address of this machine",
                ),
                Rule::new(
                    format!("{ip} daddr @cidrs goto unclaimed"),
                    "a Service range",
                ),
                Rule::new(
                    format!("{ip} daddr @vips goto unclaimed"),
                    "a Service address",
                ),
            ],
        },
        silence("silent-input", "input", FILTER, ip),
        silence("silent-output", "output", MANGLE, ip),
        Chain {
            name: "postrouting",
            hook: Some(nat),
            rules: vec![
                Rule::new(masquerade("cidrs"), "a pod that calls its own Service"),
                Rule::new(masquerade("vips"), "a pod that calls its own Service"),
            ],
        },
    ]
}

/// Drops new connections to elements of the set `silent`, before IPVS would refuse them.
fn silence(name: &'static str, point: &'static str, priority: i32, ip: &str) -> Chain {
    let text = format!("ct state new {ip} daddr . meta l4proto . th dport @silent drop");
    Chain {
        name,
        hook: Some(Hook {
            kind: "filter",
            point,
            priority,
        }),
        rules: vec![Rule::new(text, "on-no-match: drop")],
    }
}

fn arp() -> Vec<Chain> {
    let drop = |set: &str| format!("arp operation request arp daddr ip @{set} drop");
    vec![Chain {
        name: "input",
        hook: Some(Hook {
            kind: "filter",
            point: "input",
            priority: 0,
        }),
        rules: vec![
            Rule::new("arp daddr ip @own accept", "an address of this machine"),
            Rule::new(drop("cidrs"), "Service addresses belong to no link"),
            Rule::new(drop("vips"), "Service addresses belong to no link"),
        ],
    }]
}
