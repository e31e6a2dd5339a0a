//! Builders of objects for the tests.

use std::fmt::Write as _;

/// The Node objects n1 (this node), n2, n3 in zones a, a, b.
pub(crate) const NODES: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
status: {addresses: [{type: InternalIP, address: 192.168.10.11}, {type: InternalIP, address: 'fd00:10::11'}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: a}}
status: {addresses: [{type: InternalIP, address: 192.168.10.12}]}
---
apiVersion: v1
kind: Node
metadata: {name: n3, labels: {topology.kubernetes.io/zone: b}}
status: {addresses: [{type: InternalIP, address: 192.168.10.13}]}
";

/// The same, with the ranges of the pods on n1.
pub(crate) fn nodes_with_pod_ranges() -> String {
    let spec = "spec: {podCIDRs: [10.244.1.0/24, 'fd00:10:244:1::/64']}";
    NODES.replacen("\nstatus:", &format!("\n{spec}\nstatus:"), 1)
}

/// A Service in the namespace `t`.
pub(crate) struct Service<'a> {
    pub(crate) name: &'a str,
    pub(crate) ips: &'a [&'a str],
    /// `TCP 80`, `UDP 53` and so on.
    pub(crate) ports: &'a [(&'a str, u16)],
    /// Further lines of `spec`, indented by two spaces.
    pub(crate) spec: &'a str,
    /// Annotations in flow style, without braces.
    pub(crate) annotations: &'a str,
}

/// A Service with defaults and TCP port 80.
pub(crate) fn web<'a>(name: &'a str, ips: &'a [&'a str]) -> Service<'a> {
    Service {
        name,
        ips,
        ports: &[("TCP", 80)],
        spec: "",
        annotations: "",
    }
}

impl Service<'_> {
    pub(crate) fn yaml(&self) -> String {
        self.text("ClusterIP", &[])
    }

    /// The object, with the node ports of its ports in the same order.
    fn text(&self, kind: &str, node_ports: &[u16]) -> String {
        let Self {
            name,
            ips,
            ports,
            spec,
            annotations,
        } = self;
        let first = ips.first().expect("a cluster IP");
        let list = quoted(ips);
        let families: Vec<_> = ips
            .iter()
            .map(|ip| if ip.contains(':') { "IPv6" } else { "IPv4" })
            .collect();
        let mut text = format!(
            "\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: t, annotations: {{{annotations}}}}}\n\
             spec:\n  type: {kind}\n  clusterIP: '{first}'\n  clusterIPs: [{list}]\n  ipFamilies: [{}]\n{spec}  ports:\n",
            families.join(", ")
        );
        let mut node_ports = node_ports.iter();
        for (protocol, port) in *ports {
            let name = format!("{}-{port}", protocol.to_lowercase());
            let node_port = node_ports.next();
            let node_port = node_port.map_or(String::new(), |port| format!(", nodePort: {port}"));
            writeln!(
                text,
                "  - {{name: {name}, protocol: {protocol}, port: {port}{node_port}}}"
            )
            .unwrap();
        }
        text
    }
}

fn quoted(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| format!("'{word}'"));
    quoted.collect::<Vec<_>>().join(", ")
}

/// A Service that clients outside of the cluster reach.
#[derive(Clone, Copy, Default)]
pub(crate) struct External<'a> {
    /// The node ports, in the order of the Service's ports.
    pub(crate) node_ports: &'a [u16],
    /// The addresses of the load balancer.
    pub(crate) ingress: &'a [&'a str],
    /// `spec.externalIPs`.
    pub(crate) ips: &'a [&'a str],
    /// `healthCheckNodePort`; 0 for none.
    pub(crate) health_port: u16,
    /// `externalTrafficPolicy: Local`.
    pub(crate) local: bool,
    /// `loadBalancerSourceRanges`; empty for all clients.
    pub(crate) ranges: &'a [&'a str],
}

impl External<'_> {
    pub(crate) fn yaml(&self, service: &Service<'_>) -> String {
        let kind = match (self.ingress, self.node_ports) {
            ([], []) => "ClusterIP",
            ([], _) => "NodePort",
            _ => "LoadBalancer",
        };
        let policy = if self.local { "Local" } else { "Cluster" };
        let (ranges, external_ips) = (quoted(self.ranges), quoted(self.ips));
        let spec = format!(
            "{}  externalTrafficPolicy: {policy}\n  loadBalancerSourceRanges: [{ranges}]\n  externalIPs: [{external_ips}]\n  healthCheckNodePort: {}\n",
            service.spec, self.health_port
        );
        let service = Service {
            spec: &spec,
            ..*service
        };
        let ingress = self.ingress.iter().map(|ip| format!("{{ip: '{ip}'}}"));
        let ingress = ingress.collect::<Vec<_>>().join(", ");
        let text = service.text(kind, self.node_ports);
        format!("{text}status: {{loadBalancer: {{ingress: [{ingress}]}}}}\n")
    }
}

/// An EndpointSlice of `service`, with a line for each endpoint: `ADDRESS NODE [CONDITIONS]`.
pub(crate) fn slice(
    service: &str,
    name: &str,
    ports: &[(&str, u16, u16)],
    endpoints: &[impl AsRef<str>],
) -> String {
    let mut endpoints = endpoints.iter().map(AsRef::as_ref).peekable();
    let v6 = endpoints
        .peek()
        .is_some_and(|line: &&str| line.contains(':'));
    let family = if v6 { "IPv6" } else { "IPv4" };
    let mut text = format!(
        "\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {name}, namespace: t, labels: {{kubernetes.io/service-name: {service}}}}}\n\
         addressType: {family}\nports:\n"
    );
    for (protocol, port, target) in ports {
        let name = format!("{}-{port}", protocol.to_lowercase());
        writeln!(
            text,
            "- {{name: {name}, protocol: {protocol}, port: {target}}}"
        )
        .unwrap();
    }
    text.push_str(if endpoints.peek().is_none() {
        "endpoints: []\n"
    } else {
        "endpoints:\n"
    });
    for line in endpoints {
        let mut words = line.split(' ');
        let (address, node) = (
            words.next().expect("an address"),
            words.next().expect("a node"),
        );
        let conditions = match words.next() {
            Some("terminating") => "ready: false, serving: true, terminating: true",
            Some("down") => "ready: false, serving: false, terminating: false",
            _ => "ready: true, serving: true, terminating: false",
        };
        writeln!(
            text,
            "- {{addresses: ['{address}'], nodeName: {node}, conditions: {{{conditions}}}}}"
        )
        .unwrap();
    }
    text
}
