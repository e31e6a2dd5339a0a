//! Clients outside of the cluster: marks, source ranges and masquerading, with real connections (design D7).

use std::net::{IpAddr, TcpListener};
use std::process::Command;

use dataplane::nftables::{DesiredTables, Element, Links, LocalPods, RuleOptions, SetId};
use topology_core::model::{Protocol, parse_range};

use crate::lab::{Lab, NODE_V4, NODE_V6, OUTSIDER_V4, Place, Process, sh};
use crate::tables::{listener, mark, nft, source_range, write};

const VIP4: &str = "203.0.113.7";
const VIP6: &str = "2001:db8::7";

/// curl's exit code for a connection that is not answered in time.
const DROPPED: i32 = 28;

/// A node whose Service addresses are local, as the agent's routes make them, and a client outside that sends packets for
/// them to it.
fn lab() -> Lab {
    let lab = Lab::new();
    let outside = lab.outside();
    sh(&format!(
        "modprobe ip_vs; sysctl -qw net.ipv4.vs.conntrack=1
        ip route add local 203.0.113.0/24 dev lo table local src {NODE_V4}
        ip route add local 2001:db8::/64 dev lo table local src {NODE_V6}
        ip -n {outside} route add 203.0.113.0/24 via {NODE_V4}
        ip -n {outside} route add 2001:db8::/64 via {NODE_V6}"
    ));
    lab
}

/// Tables with the Service addresses, and pods and the node as the inside of the cluster.
fn tables() -> DesiredTables {
    let node = [NODE_V4, NODE_V6].map(|ip| parse_range(&host(ip)).unwrap());
    let pods = ["10.244.0.0/16", "fd00:10:244::/48"].map(|range| parse_range(range).unwrap());
    let vips = (1..10).flat_map(|nth| {
        let texts = [format!("203.0.113.{nth}"), format!("2001:db8::{nth}")];
        texts.map(|ip| Element::Address(ip.parse().unwrap()))
    });
    DesiredTables::default().with(SetId::Vips, vips).with(
        SetId::Inside,
        node.into_iter().chain(pods).map(Element::Range),
    )
}

fn host(ip: &str) -> String {
    let bits = if ip.contains(':') { 128 } else { 32 };
    format!("{ip}/{bits}")
}

/// Adds a virtual server with one real server; `at` is `-t ADDRESS:PORT` or `-f MARK`, with `-6` for IPv6.
fn serve(at: &str, real: &str) {
    sh(&format!(
        "ipvsadm -A {at} -s wrr && ipvsadm -a {at} -r {real} -m -w 1"
    ));
}

fn at(ip: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(ip, port).to_string()
}

/// The names that answer four connections from `netns`, or from the node.
fn answers(netns: Option<&str>, target: &str) -> String {
    let load = format!("guest load --target {target} --connections 4 -o json");
    let prefix = netns.map_or(String::new(), |netns| format!("ip netns exec {netns} "));
    sh(&format!("{prefix}{load} | tr -d ' \n'"))
}

/// Whether a new connection from `netns`, or from the node, is dropped.
fn is_dropped(netns: Option<&str>, ip: &str) -> bool {
    let ip = if ip.contains(':') {
        format!("[{ip}]")
    } else {
        ip.to_owned()
    };
    let mut command = Command::new("ip");
    if let Some(netns) = netns {
        command.args(["netns", "exec", netns]);
    } else {
        command = Command::new("env");
    }
    command.args(["curl", "-s", "--connect-timeout", "3", "--max-time", "10"]);
    let output = command.arg(format!("http://{ip}:80/")).output().unwrap();
    output.status.code() == Some(DROPPED)
}

fn netns(pod: &Place) -> String {
    let prefix = pod.prefix();
    prefix.rsplit(' ').next().unwrap().to_owned()
}

fn served(pods: &[(&Place, &str)]) -> Vec<Process> {
    let servers = pods.iter().flat_map(|(pod, name)| pod.serve(8080, name));
    servers.collect()
}

/// Counts packets with a mark where other programs could see them; `seen` is right before IPVS. Of TCP only: `mark` of a
/// multicast report has its tail room (`reserved_tailroom` in `include/linux/skbuff.h`).
const PROBE: &str = "table inet probe {
    chain seen { type filter hook input priority 98; meta l4proto tcp meta mark != 0 counter; }
    chain input { type filter hook input priority 102; meta l4proto tcp meta mark != 0 counter; }
    chain output { type filter hook output priority -305; meta l4proto tcp meta mark != 0 counter; }
    chain late { type filter hook output priority 300; meta l4proto tcp meta mark != 0 counter; }
    chain forward { type filter hook forward priority 0; meta l4proto tcp meta mark != 0 counter; }
    chain postrouting { type filter hook postrouting priority 0; meta l4proto tcp meta mark != 0 counter; }
}";

/// Marks new packets from outside before IPVS, as Calico does, and counts them behind it.
const OTHER: &str = "table inet other {
    chain input { type filter hook input priority 0; iifname eth0 ct state new meta mark set 0x00f00000; }
    chain output { type filter hook output priority 0; meta l4proto tcp meta mark 0x00f00000 counter; }
    chain wrong { type filter hook output priority 0; meta l4proto tcp meta mark != { 0, 0x00f00000 } counter; }
}";

fn counted(table: &str, chain: &str) -> u32 {
    let text = nft(&["list", "chain", "inet", table, chain]);
    let count = text.split("packets ").nth(1).unwrap();
    count.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn d7_clients_outside_have_real_servers_of_their_own_and_no_rule_sees_the_mark() {
    let mut lab = lab();
    let (near, far, client) = (lab.pod(), lab.pod(), lab.pod());
    let _servers = served(&[(&near, "near"), (&far, "far")]);
    for (target, number, v6) in [(VIP4, 4096, ""), (VIP6, 4097, " -6")] {
        let ip = |pod: &Place| if v6.is_empty() { pod.v4 } else { pod.v6 };
        serve(
            &format!("-t {}", at(target.parse().unwrap(), 80)),
            &at(ip(&far), 8080),
        );
        serve(&format!("-f {number}{v6}"), &at(ip(&near), 8080));
    }
    let _tables = write(&tables().with(SetId::Marks, [mark(VIP4, 4096), mark(VIP6, 4097)])).await;
    sh(&format!("nft -f - <<'EOF'\n{PROBE}\nEOF"));
    for target in [VIP4, VIP6].map(|ip| at(ip.parse().unwrap(), 80)) {
        let outside = answers(Some(lab.outside()), &target);
        assert!(outside.contains("\"near\":4"), "{target}: {outside}");
        let pod = answers(Some(&netns(&client)), &target);
        assert!(pod.contains("\"far\":4"), "{target}: {pod}");
        let node = answers(None, &target);
        assert!(node.contains("\"far\":4"), "{target}: {node}");
    }
    assert!(counted("probe", "seen") > 0, "the test can fail");
    for chain in ["input", "output", "late", "forward", "postrouting"] {
        assert_eq!(counted("probe", chain), 0, "{chain}");
    }
}

#[tokio::test]
async fn a_mark_of_another_program_is_the_same_behind_ipvs() {
    let mut lab = lab();
    let (near, far) = (lab.pod(), lab.pod());
    let _servers = served(&[(&near, "near"), (&far, "far")]);
    serve("-f 4096", &at(near.v4, 8080));
    serve("-f 4097 -6", &at(near.v6, 8080));
    for (vip, far) in [(VIP4, far.v4), (VIP6, far.v6)] {
        let vip = at(vip.parse().unwrap(), 80);
        serve(&format!("-t {vip}"), &at(far, 8080));
    }
    let link = |name: &str| LocalPods::ByLink(Links::Named(name.parse().unwrap()));
    // Packets from outside come in on `eth0`.
    let cases = [
        (LocalPods::BySource, "near"),
        (link("pod1"), "near"),
        (link("eth0"), "far"),
    ];
    for (local_pods, server) in cases {
        let options = RuleOptions {
            local_pods,
            ..RuleOptions::default()
        };
        let all = tables().with(SetId::Marks, [mark(VIP4, 4096), mark(VIP6, 4097)]);
        let _tables = write(&all.with_options(options.clone())).await;
        sh(&format!(
            "nft -f - <<'EOF'\nadd table inet other\ndelete table inet other\n{OTHER}\nEOF"
        ));
        for target in [VIP4, VIP6].map(|ip| at(ip.parse().unwrap(), 80)) {
            let outside = answers(Some(lab.outside()), &target);
            let expected = format!("\"{server}\":4");
            assert!(
                outside.contains(&expected),
                "{options:?}: {target}: {outside}"
            );
        }
        assert_eq!(
            counted("other", "output"),
            8,
            "{options:?}: the first packet of each connection"
        );
        assert_eq!(counted("other", "wrong"), 0, "{options:?}");
    }
}

#[tokio::test]
async fn clients_outside_are_dropped_and_those_inside_are_served() {
    let mut lab = lab();
    let (server, client) = (lab.pod(), lab.pod());
    let _servers = served(&[(&server, "web")]);
    for (vip, real) in [(VIP4, server.v4), (VIP6, server.v6)] {
        serve(
            &format!("-t {}", at(vip.parse().unwrap(), 80)),
            &at(real, 8080),
        );
    }
    assert!(!is_dropped(Some(lab.outside()), VIP4), "the test can fail");
    let _tables = write(&tables().with(SetId::DropOutside, [VIP4, VIP6].map(listener))).await;
    for vip in [VIP4, VIP6] {
        assert!(is_dropped(Some(lab.outside()), vip), "{vip}");
        assert!(!is_dropped(Some(&netns(&client)), vip), "{vip}");
        assert!(!is_dropped(None, vip), "{vip}");
    }
}

#[tokio::test]
async fn only_clients_in_source_ranges_connect() {
    let mut lab = lab();
    let (server, client) = (lab.pod(), lab.pod());
    let _servers = served(&[(&server, "web")]);
    // Ranges; whether they have the client outside, the pod and the node.
    let cases: [(&str, &[&str], [bool; 3]); 5] = [
        ("203.0.113.1", &["192.168.10.0/24"], [true, false, true]),
        (
            "203.0.113.2",
            &["10.244.0.0/16", "192.168.10.1/32"],
            [true, true, false],
        ),
        ("203.0.113.3", &["0.0.0.0/0"], [true, true, true]),
        ("203.0.113.4", &[], [false, false, false]),
        (
            "2001:db8::5",
            &["fd00:10::1/128", "fd00:10:244::/48"],
            [true, true, false],
        ),
    ];
    let mut tables = tables();
    for (vip, ranges, _) in cases {
        let is_v4 = !vip.contains(':');
        let real = if is_v4 { server.v4 } else { server.v6 };
        serve(
            &format!("-t {}", at(vip.parse().unwrap(), 80)),
            &at(real, 8080),
        );
        let ranges = ranges.iter().map(|range| source_range(vip, range));
        tables = tables
            .with(SetId::Firewalled, [listener(vip)])
            .with(SetId::SourceRanges, ranges);
    }
    let _tables = write(&tables).await;
    for (vip, ranges, allowed) in cases {
        let clients = [Some(lab.outside().to_owned()), Some(netns(&client)), None];
        for (client, allowed) in clients.iter().zip(allowed) {
            let dropped = is_dropped(client.as_deref(), vip);
            assert_eq!(dropped, !allowed, "{vip} with {ranges:?} from {client:?}");
        }
    }
}

#[tokio::test]
async fn connections_to_a_node_port_reach_the_endpoint_from_the_nodes_address() {
    let mut lab = lab();
    let server = lab.pod();
    let node = [(NODE_V4, server.v4), (NODE_V6, server.v6)];
    let ports = node.map(|(ip, _)| Element::Listener(ip.parse().unwrap(), Protocol::Tcp, 30080));
    let _tables = write(&tables().with(SetId::Masquerade, ports)).await;
    let outsiders: [IpAddr; 2] = [OUTSIDER_V4.parse().unwrap(), "fd00:10::1".parse().unwrap()];
    for (ip, real) in node {
        let target = at(ip.parse().unwrap(), 30080);
        serve(&format!("-t {target}"), &at(real, 8080));
        let endpoint = server.inside(|| TcpListener::bind((real, 8080)).unwrap());
        let line = format!(
            "ip netns exec {} curl -s -m 20 http://{target}/",
            lab.outside()
        );
        let mut client = Command::new("sh");
        client.args(["-c", &format!("exec {line}")]);
        let mut client = Process::spawn(client);
        let (stream, peer) = endpoint.accept().unwrap();
        assert!(!outsiders.contains(&peer.ip()), "{peer}");
        drop(stream);
        // An empty reply, or a reset: not a timeout.
        assert_ne!(client.wait().code(), Some(DROPPED));
    }
}
