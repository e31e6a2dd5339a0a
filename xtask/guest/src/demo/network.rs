//! Creates nodes and pods from network namespaces, veth pairs and bridges.
//!
//! The guest itself is node n1. Each other node is a namespace on the bridge `fabric`; each pod
//! is a namespace on the bridge `cni0` of its node. Nodes route to each other's pods.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::{Context, bail};
use guest_wire::View;

/// The name of this guest as a node.
pub(super) const NODE: &str = "n1";

/// Its zone.
pub(super) const ZONE: &str = "a";

/// The namespace of the client pod, which runs on this node.
pub(super) const CLIENT: &str = "client";

/// A pod that asks for names.
pub(super) struct DnsClient {
    pub(super) namespace: &'static str,
    address: &'static str,
    pub(super) node: &'static str,
    /// The DNS server on its node.
    pub(super) name_server: SocketAddr,
}

/// The pods that ask for names. None is the client of the virtual server: for two minutes IPVS takes replies to a port of
/// that client's connections, although the pod that sends them was asked directly.
pub(super) const DNS_CLIENTS: [DnsClient; 2] = [
    DnsClient {
        namespace: "dns-client-n1",
        address: "10.244.1.101",
        node: NODE,
        name_server: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 168, 10, 11)), 53),
    },
    DnsClient {
        namespace: "dns-client-n3",
        address: "10.244.3.100",
        node: "n3",
        name_server: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 168, 10, 13)), 53),
    },
];

/// The nodes of the example: name, and the number in their addresses.
const NODES: [(&str, u8); 4] = [("n1", 1), ("n2", 2), ("n3", 3), ("n4", 4)];

/// Creates the nodes, a pod for each endpoint of `view`, and the clients.
pub(super) fn build(view: &View) -> anyhow::Result<()> {
    shell("modprobe br_netfilter && sysctl -qw net.ipv4.ip_forward=1")?;
    shell(&script(view)?).map(drop)
}

/// Returns the name of the namespace of the pod at `address`.
pub(super) fn namespace(address: SocketAddr) -> String {
    format!("pod-{}", address.ip())
}

/// Returns a command that runs on a node: in the guest itself or in the node's namespace.
pub(super) fn on_node(node: &str, program: &str) -> Command {
    if node == NODE {
        return Command::new(program);
    }
    let mut command = inside(node);
    command.arg(program);
    command
}

/// Returns a command that runs in a network namespace.
pub(super) fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}

/// Runs a shell line and returns its standard output, or an error with its standard error.
pub(super) fn shell(line: &str) -> anyhow::Result<String> {
    let done = Command::new("sh")
        .args(["-ec", line])
        .output()
        .context("cannot start a shell")?;
    if !done.status.success() {
        bail!("`{line}`: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Writes one shell script for everything. It starts few processes, because that is slow in an emulated guest.
fn script(view: &View) -> anyhow::Result<String> {
    let mut script = String::new();
    batch(&mut script, "", &this_node());
    for (name, number) in NODES.into_iter().filter(|(name, _)| *name != NODE) {
        writeln!(script, "ip netns add {name}")?;
        batch(
            &mut script,
            "",
            &format!(
                "link add up-{name} type veth peer name eth0 netns {name}\nlink set up-{name} master fabric up\n"
            ),
        );
        batch(&mut script, name, &other_node(number));
        writeln!(
            script,
            "ip netns exec {name} sysctl -qw net.ipv4.ip_forward=1"
        )?;
    }
    for endpoint in view.endpoints() {
        let address = endpoint.address();
        pod(
            &mut script,
            endpoint.node(),
            &namespace(address),
            &address.ip().to_string(),
        )?;
    }
    pod(&mut script, NODE, CLIENT, "10.244.1.100")?;
    for client in &DNS_CLIENTS {
        pod(&mut script, client.node, client.namespace, client.address)?;
    }
    Ok(script)
}

/// Appends one `ip` process that runs `commands`, in the namespace `name` unless that is empty.
fn batch(script: &mut String, name: &str, commands: &str) {
    let inside = if name.is_empty() {
        String::new()
    } else {
        format!("-n {name} ")
    };
    for part in ["ip ", &inside, "-batch - <<'END'\n", commands, "END\n"] {
        script.push_str(part);
    }
}

fn this_node() -> String {
    let mut commands = "link add fabric type bridge\naddr add 192.168.10.11/24 dev fabric\n\
         link set fabric up\n"
        .to_owned();
    commands.push_str(&pod_bridge(1));
    commands.push_str(&routes(1));
    commands
}

fn other_node(number: u8) -> String {
    format!(
        "link set lo up\naddr add 192.168.10.1{number}/24 dev eth0\nlink set eth0 up\n{}{}",
        pod_bridge(number),
        routes(number)
    )
}

fn pod_bridge(number: u8) -> String {
    format!("link add cni0 type bridge\naddr add 10.244.{number}.1/24 dev cni0\nlink set cni0 up\n")
}

/// Returns the routes from node `number` to the pods of every other node.
fn routes(number: u8) -> String {
    NODES
        .into_iter()
        .filter(|(_, other)| *other != number)
        .fold(String::new(), |all, (_, other)| {
            format!("{all}route add 10.244.{other}.0/24 via 192.168.10.1{other}\n")
        })
}

/// Appends the commands that create the pod `name` at `address` on `node`.
fn pod(script: &mut String, node: &str, name: &str, address: &str) -> anyhow::Result<()> {
    let number = NODES
        .into_iter()
        .find_map(|(known, number)| (known == node).then_some(number))
        .with_context(|| format!("the demo has no node {node}"))?;
    let on = if node == NODE { "" } else { node };
    writeln!(script, "ip netns add {name}")?;
    let link = format!(
        "v{}",
        address.replace('.', "-").trim_start_matches("10-244-")
    );
    batch(
        script,
        on,
        &format!(
            "link add {link} type veth peer name eth0 netns {name}\nlink set {link} master cni0 up\n"
        ),
    );
    batch(
        script,
        name,
        &format!(
            "link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n\
         route add default via 10.244.{number}.1\n"
        ),
    );
    Ok(())
}
