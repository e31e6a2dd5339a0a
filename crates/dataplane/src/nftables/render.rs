//! Writes the desired tables as the text of one nft transaction.
//!
//! Every rule carries a comment that ends in a hash of its text: reading the table back, the
//! comments alone tell whether the rules are ours and of this version, whatever way the installed
//! nft prints expressions.

use std::fmt::Write as _;
use std::net::IpAddr;

use topology_core::model::{Cidr, Family, Protocol};

use super::{DesiredTables, TABLE, TableFamily};
use crate::hash::fnv1a;
use crate::routes::is_host;

/// The elements of one set, as nft writes and prints them.
pub(super) type Elements = Vec<String>;

/// A set of ours.
pub(super) struct Set {
    pub(super) name: &'static str,
    kind: &'static str,
    pub(super) elements: Elements,
}

/// A chain of ours.
pub(super) struct Chain {
    pub(super) name: &'static str,
    /// `type ... hook ... priority ...; policy ...;`, or nothing for a chain that is jumped to.
    hook: Option<Hook>,
    pub(super) rules: Vec<Rule>,
}

/// Where a base chain is hung.
#[derive(Clone, Copy)]
pub(super) struct Hook {
    pub(super) kind: &'static str,
    pub(super) point: &'static str,
    pub(super) priority: i32,
}

/// A rule and the words that explain it to whoever lists the table.
pub(super) struct Rule {
    text: String,
    about: &'static str,
}

impl Rule {
    /// `about [hash of the text]`.
    pub(super) fn comment(&self) -> String {
        format!("{} [{:08x}]", self.about, fnv1a(&self.text))
    }
}

impl Chain {
    pub(super) fn hook(&self) -> Option<Hook> {
        self.hook
    }
}

/// The set with this node's endpoints, each as a pair with itself.
pub(super) const HAIRPIN: &str = "hairpin";

/// After IPVS, whose input hook is `NF_IP_PRI_NAT_SRC - 1` = 99 (`ip_vs_ops4` in
/// `net/netfilter/ipvs/ip_vs_core.c`), and after conntrack's nat at 100.
const AFTER_IPVS: i32 = 150;
/// `NF_IP_PRI_FILTER`: before IPVS in the input hook.
const FILTER: i32 = 0;
/// `NF_IP_PRI_MANGLE`: after conntrack and before IPVS in the output hook (`NF_IP_PRI_NAT_DST + 1` = -99).
const MANGLE: i32 = -150;
/// `NF_IP_PRI_NAT_SRC` (`include/uapi/linux/netfilter_ipv4.h`): where masquerading belongs.
const SOURCE_NAT: i32 = 100;

/// One transaction that makes all tables equal to `desired`, or removes those it does not need.
pub(super) fn tables(desired: &DesiredTables) -> String {
    let mut text = String::new();
    for family in TableFamily::ALL {
        let word = family.word();
        // "add" first, so that "delete" cannot fail; both are part of the same transaction.
        put(
            &mut text,
            format_args!("add table {word} {TABLE}\ndelete table {word} {TABLE}\n"),
        );
        if desired.needs(family) {
            table(&mut text, desired, family);
        }
    }
    text
}

/// One transaction that changes set elements only.
pub(super) fn elements(held: &DesiredTables, wanted: &DesiredTables) -> String {
    let mut text = String::new();
    for family in TableFamily::ALL
        .into_iter()
        .filter(|&family| wanted.needs(family))
    {
        for (before, after) in sets(held, family).iter().zip(&sets(wanted, family)) {
            let added = missing_from(&before.elements, &after.elements);
            let removed = missing_from(&after.elements, &before.elements);
            for (verb, list) in [("add", added), ("delete", removed)] {
                if !list.is_empty() {
                    let (word, name, list) = (family.word(), after.name, list.join(", "));
                    put(
                        &mut text,
                        format_args!("{verb} element {word} {TABLE} {name} {{ {list} }}\n"),
                    );
                }
            }
        }
    }
    text
}

/// Elements of `more` that `less` does not have. Both are sorted the same way.
fn missing_from<'a>(less: &[String], more: &'a [String]) -> Vec<&'a str> {
    let less: std::collections::HashSet<&str> = less.iter().map(String::as_str).collect();
    more.iter()
        .map(String::as_str)
        .filter(|element| !less.contains(element))
        .collect()
}

/// The sets of a family's table, always in the same order.
pub(super) fn sets(desired: &DesiredTables, family: TableFamily) -> Vec<Set> {
    let addresses = family.addresses();
    let of_family = |ip: &&IpAddr| Family::of(**ip) == addresses;
    let [kind, ranges, pairs, places] = kinds(addresses);
    let cidrs = desired
        .cidrs
        .iter()
        .filter(|cidr| cidr.family() == addresses);
    let text = |ip: &IpAddr| ip.to_string();
    // nft lists a range of one address without its length.
    let range = |cidr: &Cidr| {
        if is_host(cidr) {
            text(&cidr.address())
        } else {
            cidr.to_string()
        }
    };
    let mut sets = vec![
        Set {
            name: "cidrs",
            kind: ranges,
            elements: cidrs.map(range).collect(),
        },
        Set {
            name: "vips",
            kind,
            elements: desired.vips.iter().filter(of_family).map(text).collect(),
        },
        Set {
            name: "own",
            kind,
            elements: desired.own.iter().filter(of_family).map(text).collect(),
        },
    ];
    if family != TableFamily::Arp {
        let pair = |ip: &IpAddr| format!("{ip} . {ip}");
        let elements = desired.hairpin.iter().filter(of_family).map(pair).collect();
        sets.push(Set {
            name: HAIRPIN,
            kind: pairs,
            elements,
        });
        let place = |(ip, protocol, port): &(IpAddr, Protocol, u16)| {
            format!("{ip} . {} . {port}", word(*protocol))
        };
        let silent = desired.silent.iter().filter(|(ip, ..)| of_family(&ip));
        sets.push(Set {
            name: "silent",
            kind: places,
            elements: silent.map(place).collect(),
        });
    }
    sets
}

/// The kinds of our sets: addresses, ranges, pairs of addresses, and places where a virtual server listens.
const fn kinds(family: Family) -> [&'static str; 4] {
    match family {
        Family::V4 => [
            "type ipv4_addr;",
            "type ipv4_addr; flags interval;",
            "type ipv4_addr . ipv4_addr;",
            "type ipv4_addr . inet_proto . inet_service;",
        ],
        Family::V6 => [
            "type ipv6_addr;",
            "type ipv6_addr; flags interval;",
            "type ipv6_addr . ipv6_addr;",
            "type ipv6_addr . inet_proto . inet_service;",
        ],
    }
}

/// The protocol as nft writes it.
const fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}

/// The chains of a family's table, always in the same order.
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
                rule(echo.to_owned(), "echo is answered"),
                rule(
                    "meta l4proto tcp reject with tcp reset".to_owned(),
                    "no virtual server took it",
                ),
                rule(refuse.to_owned(), "no virtual server took it"),
            ],
        },
        Chain {
            name: "input",
            hook: Some(input),
            rules: vec![
                rule(
                    format!("{ip} daddr @own accept"),
                    "an address of this machine",
                ),
                rule(
                    format!("{ip} daddr @cidrs goto unclaimed"),
                    "a Service range",
                ),
                rule(
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
                rule(masquerade("cidrs"), "a pod that calls its own Service"),
                rule(masquerade("vips"), "a pod that calls its own Service"),
            ],
        },
    ]
}

/// Drops what opens a connection to a silent place, before IPVS would refuse it.
fn silence(name: &'static str, point: &'static str, priority: i32, ip: &str) -> Chain {
    let text = format!("ct state new {ip} daddr . meta l4proto . th dport @silent drop");
    Chain {
        name,
        hook: Some(Hook {
            kind: "filter",
            point,
            priority,
        }),
        rules: vec![rule(text, "on-no-match: drop")],
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
            rule(
                "arp daddr ip @own accept".to_owned(),
                "an address of this machine",
            ),
            rule(drop("cidrs"), "Service addresses belong to no link"),
            rule(drop("vips"), "Service addresses belong to no link"),
        ],
    }]
}

fn rule(text: String, about: &'static str) -> Rule {
    Rule { text, about }
}

fn table(text: &mut String, desired: &DesiredTables, family: TableFamily) {
    put(text, format_args!("table {} {TABLE} {{\n", family.word()));
    for set in sets(desired, family) {
        put(
            text,
            format_args!("\tset {} {{\n\t\t{}\n", set.name, set.kind),
        );
        if !set.elements.is_empty() {
            put(
                text,
                format_args!("\t\telements = {{ {} }}\n", set.elements.join(", ")),
            );
        }
        text.push_str("\t}\n");
    }
    for chain in chains(family) {
        put(text, format_args!("\tchain {} {{\n", chain.name));
        if let Some(Hook {
            kind,
            point,
            priority,
        }) = chain.hook
        {
            put(
                text,
                format_args!("\t\ttype {kind} hook {point} priority {priority}; policy accept;\n"),
            );
        }
        for rule in &chain.rules {
            put(
                text,
                format_args!("\t\t{} comment \"{}\"\n", rule.text, rule.comment()),
            );
        }
        text.push_str("\t}\n");
    }
    text.push_str("}\n");
}

/// Appends to a string, which cannot fail.
fn put(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // `String`'s `write_fmt` returns an error only if a `Display` does; ours do not.
    let _written = text.write_fmt(piece);
}
