//! The chains and rules of our tables.

use topology_core::model::{Family, IpNetwork};

use super::family::TableFamily;
use super::options::{LocalPods, Masquerade, RuleOptions};
use super::sets::SetId;
use super::table::{Chain, Hook, Rule};

/// Before IPVS' hooks in the input hook, `NF_IP_PRI_NAT_SRC - 2` = 98 for replies and 99 for requests (`ip_vs_ops4` in
/// `net/netfilter/ipvs/ip_vs_core.c`), and after everything else: `NF_IP_PRI_SECURITY` is 50.
const BEFORE_IPVS: i32 = 97;
/// After IPVS, for packets that stay on the node, and in the forward hook, where IPVS has 100.
const AFTER_IPVS: i32 = 101;
/// First in the output hook, before `NF_IP_PRI_RAW` = -300: only packets from IPVS have a connection there, since
/// conntrack comes at -200.
const OUTPUT_FIRST: i32 = -310;
/// After IPVS, whose input hook is `NF_IP_PRI_NAT_SRC - 1` = 99 (`ip_vs_ops4` in
/// `net/netfilter/ipvs/ip_vs_core.c`), and after conntrack's nat at 100.
const AFTER_NAT: i32 = 150;
/// `NF_IP_PRI_FILTER`, for ARP.
const FILTER: i32 = 0;
/// `NF_IP_PRI_MANGLE`: after conntrack and before IPVS in the output hook (`NF_IP_PRI_NAT_DST + 1` = -99).
const MANGLE: i32 = -150;
/// Before `NF_IP_PRI_NAT_DST` = -100, where other programs have their NAT.
const BEFORE_NAT: i32 = -110;
/// `NF_IP_PRI_NAT_SRC` (`include/uapi/linux/netfilter_ipv4.h`), the priority for masquerading.
const SOURCE_NAT: i32 = 100;

/// The chains of a family's table, in a fixed order. Source ranges have the prefix lengths `lengths`.
pub(super) fn chains(family: TableFamily, lengths: &[u8], options: &RuleOptions) -> Vec<Chain> {
    let (echo, refuse) = match family {
        TableFamily::Ip => ("icmp type echo-request", "icmp port-unreachable"),
        TableFamily::Ip6 => ("icmpv6 type echo-request", "icmpv6 port-unreachable"),
        TableFamily::Arp => return vec![arp()],
    };
    let ip = family.as_str();
    let (pods, masquerade) = (&options.local_pods, options.masquerade(family));
    // First the chains that others jump to.
    let first = source_ranges(family, lengths).into_iter();
    let others = [
        save_mark(),
        reply_source(ip),
        unclaimed(echo, refuse),
        base("input", ("input", AFTER_NAT), claim(ip)),
        nat("prerouting", BEFORE_NAT, vec![keep_target(ip)]),
        nat("output", BEFORE_NAT, vec![keep_target(ip)]),
        nat("postrouting", SOURCE_NAT, postrouting(ip, pods, masquerade)),
        base("before-ipvs", ("input", BEFORE_IPVS), before_ipvs(ip, pods)),
        base(
            "before-ipvs-output",
            ("output", MANGLE),
            before_ipvs_output(ip),
        ),
        base(
            "after-ipvs-input",
            ("input", AFTER_IPVS),
            replies(ip).into_iter().chain(unmark(ip, pods)).collect(),
        ),
        base(
            "after-ipvs-output",
            ("output", OUTPUT_FIRST),
            unmark(ip, pods),
        ),
        base(
            "after-ipvs-forward",
            ("forward", AFTER_IPVS),
            replies(ip).into(),
        ),
    ];
    first.chain(others).collect()
}

/// A chain of the type `filter` at a hook and priority.
fn base(name: &'static str, (point, priority): (&'static str, i32), rules: Vec<Rule>) -> Chain {
    let hook = Hook {
        kind: "filter",
        point,
        priority,
    };
    Chain {
        name,
        hook: Some(hook),
        rules,
    }
}

/// A chain of the type `nat` at the hook of its name. It sees the first packet of each connection.
fn nat(point: &'static str, priority: i32, rules: Vec<Rule>) -> Chain {
    let hook = Hook {
        kind: "nat",
        point,
        priority,
    };
    Chain {
        name: point,
        hook: Some(hook),
        rules,
    }
}

/// Drops packets to firewalled virtual servers, unless the source is in one of the source ranges. `None` for the family
/// without such ranges.
pub(super) fn source_ranges(family: TableFamily, lengths: &[u8]) -> Option<Chain> {
    let ip = match family {
        TableFamily::Arp => return None,
        TableFamily::Ip | TableFamily::Ip6 => family.as_str(),
    };
    let returns = lengths.iter().filter_map(|length| {
        let (mask, listener) = (mask(family.addresses(), *length)?, listener(ip));
        let set = SetId::SourceRanges.with_length(Some(*length));
        let text = format!("{listener} . {ip} saddr & {mask} @{set} return");
        Some(Rule::new(text, "a client that may connect"))
    });
    let drop = Rule::new("drop", "outside of the Service's source ranges");
    Some(Chain {
        name: SetId::SourceRanges.row().name,
        hook: None,
        rules: returns.chain([drop]).collect(),
    })
}

/// The address of a netmask.
fn mask(family: Family, length: u8) -> Option<String> {
    let any = match family {
        Family::V4 => [0; 4].into(),
        Family::V6 => [0; 16].into(),
    };
    let range = IpNetwork::new(any, length).ok()?;
    Some(range.mask().to_string())
}

/// Answers what no virtual server took.
fn unclaimed(echo: &str, refuse: &str) -> Chain {
    let refused = |text: String| Rule::new(text, "no virtual server took it");
    Chain {
        name: "unclaimed",
        hook: None,
        rules: vec![
            // As long as kube-proxy's addresses are on `kube-ipvs0`, connections of the node to a Service have its address
            // as their source, too.
            Rule::new("ct direction reply accept", "a reply to this node"),
            Rule::new(format!("{echo} accept"), "echo is answered"),
            refused("meta l4proto tcp reject with tcp reset".to_owned()),
            refused(format!("reject with {refuse}")),
        ],
    }
}

/// Finds packets to Service addresses that IPVS left.
fn claim(ip: &str) -> Vec<Rule> {
    let unclaimed = |set: &str| format!("{ip} daddr @{set} goto unclaimed");
    vec![
        Rule::new(
            format!("{ip} daddr @own accept"),
            "an address of this machine",
        ),
        Rule::new(
            format!("{} @health accept", listener(ip)),
            "the agent answers health checks",
        ),
        Rule::new(unclaimed("cidrs"), "a Service range"),
        Rule::new(unclaimed("vips"), "a Service address"),
    ]
}

/// Leaves the destination of connections to virtual servers as it is, so that no later chain changes it: the kernel asks
/// no more chains after a translation, also to the same address (`nf_nat_inet_fn` in `net/netfilter/nf_nat_core.c`). Other
/// programs forward a port of all local addresses, as the CNI plugin `portmap` does for the `hostPort` of a pod, and our
/// routes make Service addresses local.
fn keep_target(ip: &str) -> Rule {
    let text = format!("{} @served dnat to {ip} daddr", listener(ip));
    Rule::new(text, "IPVS serves it")
}

fn postrouting(ip: &str, pods: &LocalPods, masquerade: Masquerade) -> Vec<Rule> {
    // At any address: a packet from a pod to itself that passes here was sent to another address.
    let hairpin = Rule::new(
        format!("{ip} saddr . {ip} daddr @hairpin masquerade"),
        "a pod that calls its own Service",
    );
    let action = |listener: &str| format!("{listener} @masqueraded masquerade fully-random");
    let external = by_original_listener(ip, action, "replies come back through this node");
    std::iter::once(hairpin)
        .chain(external)
        .chain(from_other_nodes(ip, pods))
        .chain(cluster_ips(ip, pods, masquerade))
        .collect()
}

/// Masquerades connections of other nodes' pods to endpoints of other nodes with `externalTrafficPolicy: Local`: the
/// endpoint would reply without this node. Their addresses do not show where pods run, so a rule compares the links: such
/// packets leave on the link on which they came in. nft compares only with a set, so each link is in one twice.
///
/// Recognized by links, such pods are outside, and outside clients get endpoints of this node.
fn from_other_nodes(ip: &str, pods: &LocalPods) -> Vec<Rule> {
    if matches!(pods, LocalPods::ByLink(_)) {
        return Vec::new();
    }
    let clients = format!("ct original {ip} saddr @inside");
    let elsewhere = format!("{ip} daddr . {ip} daddr != @hairpin");
    let returns = "update @same-link { iif . iif } iif . oif @same-link";
    let action = |listener: &str| {
        format!("{listener} @marked {clients} {elsewhere} {returns} masquerade fully-random")
    };
    by_original_listener(ip, action, "from another node's pod to another node")
}

/// Masquerades connections to cluster IPs, but never those to ports that serve outside clients with their own address.
/// The hook gets the incoming link of packets that IPVS has sent, from `ip_output` (`net/ipv4/ip_output.c`) and
/// `ip6_output`, and none for those of this node's own processes.
///
/// Only packets to a cluster IP that IPVS took leave on another link than `lo`.
fn cluster_ips(ip: &str, pods: &LocalPods, masquerade: Masquerade) -> Vec<Rule> {
    let not_local = match pods {
        LocalPods::BySource => format!("ct original {ip} saddr != @inside "),
        LocalPods::ByLink(links) => format!("iifname != {links} "),
    };
    let (clients, about) = match masquerade {
        Masquerade::Nothing => return Vec::new(),
        Masquerade::NotLocal => (not_local, "a client that is no pod of this node"),
        Masquerade::Everything => (String::new(), "every client"),
    };
    let keep = |listener: &str| format!("{listener} @marked accept");
    let keep = by_original_listener(ip, keep, "externalTrafficPolicy: Local");
    let masquerade = ["cidrs", "vips"].map(|set| {
        let to = format!("ct original {ip} daddr @{set}");
        let text = format!("oif != \"lo\" {to} {clients}masquerade fully-random");
        Rule::new(text, about)
    });
    keep.into_iter().chain(masquerade).collect()
}

/// Drops new connections to elements of the set `silent`, before IPVS would refuse them.
fn silence(ip: &str) -> Rule {
    let text = format!("ct state new {} @silent drop", listener(ip));
    Rule::new(text, "on-no-match: drop")
}

/// Marks packets from outside of the cluster.
///
/// IPVS looks for a virtual server with the packet's mark first (`ip_vs_service_find` in
/// `net/netfilter/ipvs/ip_vs_ctl.c`), so marked packets have other real servers than those from inside. It does so only for
/// packets without a connection of its own, which may have one of conntrack. Packets that conntrack calls invalid get no
/// mark: [`unmark`] would not know them.
///
/// The first rule ends the chain for most packets of most connections.
fn before_ipvs(ip: &str, pods: &LocalPods) -> Vec<Rule> {
    let listener = listener(ip);
    let inside = |client: String| Rule::new(format!("{client} accept"), "from inside the cluster");
    let save = Rule::new(
        format!("ct state new,established meta mark != 0 {listener} @marked jump save-mark"),
        "another program's mark",
    );
    let drop = Rule::new(
        format!("ct state new {listener} @drop-outside drop"),
        "no endpoint for clients outside of the cluster",
    );
    let mark = Rule::new(
        format!("ct state new,established meta mark set {listener} map @marks"),
        "endpoints for clients outside of the cluster",
    );
    let rules = match pods {
        LocalPods::BySource => [inside(format!("{ip} saddr @inside")), drop, save, mark],
        // `unmark` does not see the link, and so clears the marks of all clients.
        LocalPods::ByLink(links) => [save, inside(format!("iifname {links}")), drop, mark],
    };
    let unmarked = Rule::new(
        format!("ct state established {listener} != @marked accept"),
        "the same endpoints for all clients",
    );
    [unmarked, silence(ip), check_source(ip)]
        .into_iter()
        .chain(rules)
        .collect()
}

/// New connections of this node's processes.
fn before_ipvs_output(ip: &str) -> Vec<Rule> {
    let known = Rule::new("ct state established accept", "IPVS decided before");
    vec![known, silence(ip), check_source(ip)]
}

/// Keeps the mark of another program while IPVS has the packet: Calico marks packets in the input hook, and applies no
/// policy to those without its mark in the output hook (`filterOutputChain` in `felix/rules/static.go`). So a packet whose
/// mark cannot be kept is dropped.
fn save_mark() -> Chain {
    Chain {
        name: "save-mark",
        hook: None,
        rules: vec![
            Rule::new(
                "update @saved-marks { ct id : meta mark } return",
                "kept until IPVS has sent it",
            ),
            Rule::new("drop", "too many marks to keep"),
        ],
    }
}

/// Also for packets that another program hides from conntrack: IPVS serves them.
fn check_source(ip: &str) -> Rule {
    let (listener, chain) = (listener(ip), SetId::SourceRanges.row().name);
    Rule::new(
        format!("ct state new,invalid,untracked {listener} @firewalled jump {chain}"),
        "a Service with source ranges",
    )
}

/// Clears the mark, so that rules of other programs never see it, and restores the one before. Setting the mark from the
/// map first ends the rule for packets without a mark of ours.
fn unmark(ip: &str, pods: &LocalPods) -> Vec<Rule> {
    let inside = matches!(pods, LocalPods::BySource).then(|| {
        let text = format!("ct original {ip} saddr @inside accept");
        Rule::new(text, "from inside the cluster")
    });
    let clear = |listener: &str| format!("meta mark set {listener} map @marks meta mark set 0");
    let rules = by_original_listener(ip, clear, "IPVS has read the mark");
    let restore = Rule::new(
        "meta mark set ct id map @saved-marks delete @saved-marks { ct id : meta mark }",
        "another program's mark",
    );
    let unmarked = Rule::new("meta mark 0 accept", "no mark of ours");
    std::iter::once(unmarked)
        .chain(inside)
        .chain(rules)
        .chain([restore])
        .collect()
}

/// Finds replies that IPVS sends from a Service address.
fn replies(ip: &str) -> [Rule; 2] {
    let reply = |set: &str| format!("ct direction reply {ip} saddr @{set} goto reply-source");
    [
        Rule::new(reply("cidrs"), "from a Service range"),
        Rule::new(reply("vips"), "from a Service address"),
    ]
}

/// Sends a reply from the address and port to which the client has sent.
///
/// IPVS finds the connection of a reply by the real server and the client (`ip_vs_conn_out_get` in
/// `net/netfilter/ipvs/ip_vs_conn.c`). If a client uses one port for two virtual servers with one real server, or soon after
/// for the real server itself, that is another connection than the client's, which conntrack knows.
fn reply_source(ip: &str) -> Chain {
    let source = |protocol| {
        let address = format!("{ip} saddr set ct original {ip} daddr");
        let port = format!("{protocol} sport set ct original proto-dst");
        let text = format!("meta l4proto {protocol} {address} {port}");
        Rule::new(text, "the address that the client asked")
    };
    Chain {
        name: "reply-source",
        hook: None,
        // nft does not compute the checksum of SCTP.
        rules: ["tcp", "udp"].map(source).into(),
    }
}

/// Address, protocol and port that a packet goes to.
fn listener(ip: &str) -> String {
    format!("{ip} daddr . meta l4proto . th dport")
}

/// Rules on address, protocol and port of a connection before IPVS changed them; `action` gets these. One rule for each
/// protocol: nft 1.0.6 knows the type of `ct original proto-dst` only behind a match of the protocol.
fn by_original_listener(
    ip: &str,
    action: impl Fn(&str) -> String,
    about: &'static str,
) -> Vec<Rule> {
    let listener = format!("ct original {ip} daddr . meta l4proto . ct original proto-dst");
    let action = action(&listener);
    let text = |protocol| format!("meta l4proto {protocol} {action}");
    let protocols = ["tcp", "udp", "sctp"].into_iter();
    protocols
        .map(|protocol| Rule::new(text(protocol), about))
        .collect()
}

fn arp() -> Chain {
    let drop = |set: &str| {
        let text = format!("arp operation request arp daddr ip @{set} drop");
        Rule::new(text, "Service addresses belong to no link")
    };
    let own = Rule::new("arp daddr ip @own accept", "an address of this machine");
    base(
        "input",
        ("input", FILTER),
        vec![own, drop("cidrs"), drop("vips")],
    )
}
