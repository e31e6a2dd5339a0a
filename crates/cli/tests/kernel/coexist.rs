//! Beside firewalld, Docker, Calico, chained Cilium and what kube-proxy leaves: Services answer, and the agent changes nothing
//! of theirs, also after a reload of the ruleset.
//!
//! The files in `coexist` install each product's rules, with their source.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use crate::external::{
    Client, DROPPED, LOCAL, NETS, Net, World, all_targets, answers, attempt, counts,
    node_addresses, tcp,
};
use crate::lab::{NODE_V4, NODE_V6, Place, Process, sh, wait_until};

/// The script that installs a product's rules, on an empty ruleset or over its own.
type Script = &'static str;

const DOCKER: Script = include_str!("coexist/docker.sh");
const CALICO: Script = include_str!("coexist/calico.sh");
const CILIUM: Script = include_str!("coexist/cilium.sh");
const FIREWALLD: Script = include_str!("coexist/firewalld.sh");
const KUBE_PROXY_IPTABLES: Script = include_str!("coexist/kube-proxy-iptables.sh");
const PORTMAP: Script = include_str!("coexist/portmap.sh");
const KUBE_PROXY_IPVS: Script = include_str!("coexist/kube-proxy-ipvs.sh");

/// A node with the product's rules and no agent yet.
fn world(product: Script, arguments: &[&str]) -> World {
    let world = World::new(&[&["--check-period", "1s"][..], arguments].concat());
    world.write_service(&LOCAL);
    world.write_endpoints(&[(&world.near, "n1"), (&world.far, "n2")]);
    sh(product);
    world
}

/// Everything in the kernel that a product made: its rules in every backend without counters, its sets, and the addresses of
/// `kube-ipvs0`.
fn foreign_state() -> String {
    let saves = [
        "iptables-save",
        "ip6tables-save",
        "iptables-legacy-save",
        "ip6tables-legacy-save",
    ];
    let saves = saves.map(|save| format!("{save} | sed -e '/^#/d' -e 's/ \\[[0-9:]*\\]$//'"));
    let lines = format!(
        "nft -s list ruleset\n{}\nipset save\nip -o address show dev kube-ipvs0 2>/dev/null || true",
        saves.join("\n")
    );
    without_our_tables(&sh(&lines))
}

fn without_our_tables(ruleset: &str) -> String {
    let mut is_ours = false;
    let mut kept = String::new();
    for line in ruleset.lines() {
        is_ours |= line.starts_with("table ") && line.contains(" ipvs-topo {");
        if !is_ours {
            kept = kept + line + "\n";
        }
        is_ours &= line != "}";
    }
    kept
}

/// Every frontend answers, and endpoints see the source addresses that `externalTrafficPolicy: Local` promises.
fn assert_served(world: &World) {
    let both = counts(&[("near", 2), ("far", 2)]);
    for net in NETS {
        let Net { outsider, .. } = net;
        for target in all_targets(&net) {
            let outside = answers(Some(&world.outsider), &target, 2);
            assert_eq!(outside.servers, counts(&[("near", 2)]), "{target:?}");
            assert_eq!(outside.peers, [outsider.to_owned()].into(), "{target:?}");
        }
        let is_v4 = outsider.contains('.');
        let (cluster_ip, client) = if is_v4 {
            ("10.96.0.10", world.client.v4)
        } else {
            ("fd00:10:96::a", world.client.v6)
        };
        let pod = answers(Some(&world.client), &tcp(cluster_ip, 80), 4);
        assert_eq!(pod.servers, both, "{cluster_ip} from a pod");
        assert_eq!(pod.peers, [client.to_string()].into(), "{cluster_ip}");
        let node = answers(None, &tcp(cluster_ip, 80), 4);
        assert_eq!(node.servers, both, "{cluster_ip} from the node");
        let own: BTreeSet<String> = node_addresses();
        assert!(node.peers.is_subset(&own), "{cluster_ip}: {:?}", node.peers);
    }
}

/// Starts the agent beside the product, and reloads the product's rules as `systemctl reload nftables` does, which deletes
/// every table. `own_traffic` asserts what the product itself serves and refuses.
fn coexist(world: &mut World, product: Script, own_traffic: impl Fn(&World)) {
    own_traffic(world);
    let before = foreign_state();
    assert!(before.lines().count() > 20, "the product has rules");
    world.start_agent();
    assert_served(world);
    own_traffic(world);
    assert_eq!(foreign_state(), before);

    sh(&format!("nft flush ruleset\n{product}"));
    World::wait_tables();
    assert_served(world);
    own_traffic(world);
    assert_eq!(foreign_state(), before);
}

/// A listener of the node itself.
fn host_serves(port: u16) -> Process {
    let mut server = std::process::Command::new("guest");
    server.args([
        "serve",
        "--listen",
        &format!("[::]:{port}"),
        "--name",
        "host",
    ]);
    let server = Process::spawn(server);
    let target = tcp(NODE_V4, port);
    wait_until("a listener", || attempt(None, &target).is_ok());
    server
}

#[test]
fn firewalld_is_left_alone_and_services_answer_at_the_ports_that_its_zones_open() {
    let mut world = world(FIREWALLD, &[]);
    let _servers = [22, 9000].map(host_serves);
    coexist(&mut world, FIREWALLD, |world| {
        let outsider = Some(&world.outsider);
        assert_eq!(attempt(outsider, &tcp(NODE_V4, 22)), Ok(()));
        let refused = attempt(outsider, &tcp(NODE_V4, 9000));
        assert_eq!(refused, Err(ErrorKind::HostUnreachable));
    });
}

/// A container of Docker's default network, which publishes port 8088, beside the agent.
struct Docker {
    world: World,
    container: Place,
    /// The server in the container, and one outside.
    _servers: [Process; 2],
}

impl Docker {
    /// Starts the agent beside the rules.
    fn start(rules: Script) -> Self {
        let mut world = world(rules, &[]);
        // So that the outside host can try to reach pods directly.
        world.lab.route_from_outside(&["10.244.1.0/24"]);
        let container = world
            .lab
            .container("docker0", "172.17.0.1/16", "172.17.0.2");
        let servers = [
            (&container, "172.17.0.2:8088", "box"),
            (&world.outsider, "192.168.10.1:8099", "out"),
        ];
        let servers = servers.map(|(place, at, name)| {
            let server = place.spawn(&format!("guest serve --listen {at} --name {name} --peer"));
            place.wait_for_server(at);
            server
        });
        world.start_agent();
        Self {
            world,
            container,
            _servers: servers,
        }
    }

    /// Adds the remedy to the rules, as an operator makes it permanent, and checks both as for other products.
    fn coexist_with(mut self, rules: Script, remedy: &str) {
        self.world.node.stop();
        sh("nft delete table ip ipvs-topo; nft delete table ip6 ipvs-topo");
        let product: Script = format!("{rules}\n{remedy}").leak();
        sh(product);
        coexist(&mut self.world, product, |world| {
            docker_serves(world, &self.container);
        });
    }
}

fn docker_serves(world: &World, container: &Place) {
    let outside = answers(Some(&world.outsider), &tcp(NODE_V4, 8088), 2);
    assert_eq!(outside.servers, counts(&[("box", 2)]));
    let outsider = world.outsider.v4.to_string();
    assert_eq!(outside.peers, [outsider].into());
    // The container's own connections are masqueraded.
    let target = tcp(&world.outsider.v4.to_string(), 8099);
    let seen = answers(Some(container), &target, 1).peers;
    assert_eq!(seen, [NODE_V4.to_owned()].into());
    // Not published, and nothing forwards to it.
    let far = tcp(&world.far.v4.to_string(), 8080);
    assert_eq!(attempt(Some(&world.outsider), &far), DROPPED);
}

/// The command that a warning names, which begins with `start`.
fn remedy(line: &str, start: &str) -> String {
    let (_, rest) = line.split_once(&format!("`{start}")).expect("a remedy");
    let (rest, _) = rest.split_once('`').expect("a whole command");
    format!("{start}{rest}")
}

#[test]
fn docker_is_left_alone_and_its_forward_policy_is_reported_with_a_remedy_that_helps() {
    let docker = Docker::start(DOCKER);
    docker.world.node.wait_log("dropped by default");
    let line = docker.world.node.only_line("dropped by default");
    docker.coexist_with(DOCKER, &remedy(&line, "nft insert rule ip filter FORWARD"));
}

#[test]
fn docker_with_legacy_iptables_is_left_alone_and_reported_with_a_remedy_that_helps() {
    let legacy: Script = format!("RESTORE=iptables-legacy-restore\n{DOCKER}").leak();
    let docker = Docker::start(legacy);
    docker.world.node.wait_log("legacy iptables");
    let line = docker.world.node.only_line("legacy iptables");
    assert!(line.contains("dropped by default"), "{line}");
    let shown = sh(&remedy(&line, "iptables-legacy -S FORWARD"));
    assert!(shown.starts_with("-P FORWARD DROP"), "{shown}");
    sh("iptables-legacy -P FORWARD ACCEPT");
    let socket = docker.world.node.socket();
    let status = format!("ipvs-topo status -o json --socket {}", socket.display());
    wait_until("no warning", || !sh(&status).contains("ForwardPolicy"));
    sh("iptables-legacy -P FORWARD DROP");
    docker.coexist_with(legacy, &remedy(&line, "iptables-legacy -I FORWARD"));
}

#[test]
fn calico_is_left_alone_and_its_marks_and_policies_have_their_effect_on_services() {
    let mut world = world(CALICO, &[]);
    coexist(&mut world, CALICO, |world| {
        let far = |port| tcp(&world.far.v4.to_string(), port);
        let client: Client<'_> = Some(&world.client);
        assert_eq!(attempt(client, &far(8080)), Ok(()));
        assert_eq!(attempt(client, &far(9999)), DROPPED);
    });
}

#[test]
fn chained_cilium_is_left_alone() {
    let mut world = world(CILIUM, &[]);
    coexist(&mut world, CILIUM, |world| {
        let far = tcp(&world.far.v4.to_string(), 8080);
        let seen = answers(Some(&world.client), &far, 1).peers;
        assert_eq!(seen, [world.client.v4.to_string()].into());
    });
}

/// PAIN-28: the hostPort is for the addresses of the node, and the rules are for all local addresses.
fn host_port_takes_no_port_of_a_service(rules: Script) {
    let mut world = world(rules, &[]);
    let pod = world.lab.pod();
    let _servers = pod.serve(8080, "host-port");
    coexist(&mut world, rules, |world| {
        for node in [NODE_V4, NODE_V6] {
            let outside = answers(Some(&world.outsider), &tcp(node, 80), 2);
            assert_eq!(outside.servers, counts(&[("host-port", 2)]), "{node}");
        }
    });
    world.node.stop();
    sh("nft flush chain ip ipvs-topo prerouting");
    let taken = answers(Some(&world.client), &tcp("10.96.0.10", 80), 2);
    assert_eq!(
        taken.servers,
        counts(&[("host-port", 2)]),
        "without the rule"
    );
}

#[test]
fn a_pod_with_a_host_port_takes_no_port_of_a_service() {
    host_port_takes_no_port_of_a_service(PORTMAP);
}

#[test]
fn a_pod_with_a_host_port_takes_no_port_of_a_service_with_legacy_iptables() {
    let restores = "RESTORE=iptables-legacy-restore RESTORE6=ip6tables-legacy-restore";
    host_port_takes_no_port_of_a_service(format!("{restores}\n{PORTMAP}").leak());
}

#[test]
fn rules_that_kube_proxy_in_iptables_mode_leaves_are_reported_and_stay() {
    let mut world = world(KUBE_PROXY_IPTABLES, &[]);
    coexist(&mut world, KUBE_PROXY_IPTABLES, |world| {
        let old = answers(Some(&world.client), &tcp("10.96.0.99", 80), 2);
        assert_eq!(old.servers, counts(&[("near", 2)]));
    });
    world
        .node
        .wait_log("the chain KUBE-SERVICES of a kube-proxy in iptables mode");
}

#[test]
fn everything_that_kube_proxy_in_ipvs_mode_leaves_is_reported_and_only_virtual_servers_of_the_cluster_are_adopted()
 {
    let mut world = world(KUBE_PROXY_IPVS, &["--adopt"]);
    let near = world.near.v4;
    for at in [
        "10.96.0.10:80",
        "10.96.0.99:80",
        "203.0.113.7:80",
        "192.168.10.11:30080",
    ] {
        sh(&format!(
            "ipvsadm -A -t {at} -s rr && ipvsadm -a -t {at} -r {near}:8080 -m -w 1"
        ));
    }
    coexist(&mut world, KUBE_PROXY_IPVS, |world| {
        let old = answers(Some(&world.client), &tcp("10.96.0.99", 80), 2);
        assert_eq!(old.servers, counts(&[("near", 2)]));
    });
    assert!(sh("ipvsadm -Sn").contains("-A -t 10.96.0.99:80 -s rr"));
    world
        .node
        .wait_log("the ipset KUBE-CLUSTER-IP of a kube-proxy in ipvs mode");
}
