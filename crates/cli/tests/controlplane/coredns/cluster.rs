//! Random clusters for DNS: one namespace each, and Nodes that all of them share.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::random::Dice;
use crate::random::service::FAMILIES;

/// The Nodes `n1`, `n2` and so on, each with its zone. The pod range of `nN` is 127.0.N.0/24.
pub(crate) const ZONES: [&str; 4] = ["a", "b", "a", "c"];

/// Services of every fifth cluster, with their numbers of endpoints. A UDP message has no room for the addresses of the
/// first, nor for those in the additional section of the second.
pub(crate) const LARGE: [(&str, u8); 2] = [("large", 150), ("medium", 12)];

/// The most endpoints in a slice of Kubernetes' own controller.
const IN_SLICE: usize = 100;

/// A port of a Service: its name, protocol and number.
pub(crate) type DnsPort = (&'static str, &'static str, u16);

const PORTS: [DnsPort; 4] = [
    ("http", "TCP", 80),
    ("dns", "UDP", 53),
    ("dns-tcp", "TCP", 53),
    ("assoc", "SCTP", 132),
];

pub(crate) struct DnsCluster {
    pub(crate) namespace: String,
    pub(crate) services: Vec<DnsService>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServiceKind {
    ClusterIps(Vec<IpAddr>),
    Headless,
    ExternalName(String),
}

pub(crate) struct DnsService {
    pub(crate) name: String,
    pub(crate) kind: ServiceKind,
    pub(crate) ports: Vec<DnsPort>,
    pub(crate) slices: Vec<DnsSlice>,
    /// `internalTrafficPolicy: Local`
    pub(crate) is_local: bool,
    publishes_not_ready: bool,
    families: &'static [&'static str],
    pub(crate) annotations: Value,
    pub(crate) labels: Value,
}

#[derive(Clone)]
pub(crate) struct DnsSlice {
    pub(crate) family: &'static str,
    /// The names and protocols of ports, and the numbers of pods.
    pub(crate) ports: Vec<DnsPort>,
    pub(crate) endpoints: Vec<DnsEndpoint>,
}

#[derive(Clone)]
pub(crate) struct DnsEndpoint {
    pub(crate) address: IpAddr,
    pub(crate) hostname: Option<String>,
    /// The number of its Node.
    pub(crate) node: usize,
    pub(crate) is_ready: bool,
    pub(crate) is_serving: bool,
    pub(crate) is_terminating: bool,
}

impl DnsEndpoint {
    /// The first label of its name.
    pub(crate) fn host(&self) -> String {
        let dashed = || {
            let label = self.address.to_string().replace(['.', ':'], "-");
            if label.ends_with('-') {
                format!("{label}0")
            } else {
                label
            }
        };
        self.hostname.clone().unwrap_or_else(dashed)
    }
}

impl DnsService {
    /// The ports with names in DNS, each once. Of a headless Service they are those of the slices.
    pub(crate) fn dns_ports(&self) -> Vec<DnsPort> {
        if self.kind != ServiceKind::Headless {
            return self.ports.clone();
        }
        let of_slices = self.slices.iter().flat_map(|slice| &slice.ports);
        let by_name = of_slices.map(|port| ((port.0, port.1), *port));
        by_name.collect::<BTreeMap<_, _>>().into_values().collect()
    }
}

impl DnsCluster {
    pub(crate) fn random(number: u8) -> Self {
        let mut dice = Dice::new(u64::from(number) + 10_000);
        let namespace = format!("dns-{number}");
        let mut services = Vec::new();
        for index in 0..4 + dice.roll(4) {
            services.push(service(&mut dice, number, &namespace, index));
        }
        if number.is_multiple_of(5) {
            let large = LARGE.into_iter();
            services.extend(large.map(|(name, count)| with_endpoints(number, name, count)));
        }
        Self {
            namespace,
            services,
        }
    }

    /// A cluster whose Services prefer the client's zone, or permit no other.
    pub(crate) fn zonal(number: u8) -> Self {
        let mut dice = Dice::new(u64::from(number) + 20_000);
        let policies = [
            (json!({"topology.ipvs-topo.io/keys": "zone,*"}), "none"),
            (json!({}), "zonal"),
            (json!({"topology.ipvs-topo.io/keys": "zone"}), "none"),
        ];
        let services = policies.into_iter().enumerate().map(|(index, policy)| {
            let families = dice.of(&FAMILIES);
            let ports = vec![PORTS[0]];
            let (one, others) = families.split_at(1);
            let mut slices = slices(&mut dice, 100 + number, index, one, &ports);
            for slice in &mut slices {
                slice.ports = vec![("http", "TCP", 8080)];
                for endpoint in &mut slice.endpoints {
                    endpoint.is_terminating = false;
                }
            }
            for family in others {
                let same_pods = slices.iter().map(|slice| slice.of_other_family(family));
                let same_pods: Vec<_> = same_pods.collect();
                slices.extend(same_pods);
            }
            DnsService {
                name: format!("z{index}"),
                kind: ServiceKind::Headless,
                ports,
                slices,
                is_local: false,
                publishes_not_ready: false,
                families,
                annotations: policy.0,
                labels: json!({"tier": policy.1}),
            }
        });
        Self {
            namespace: format!("zonal-{number}"),
            services: services.collect(),
        }
    }

    /// A Service whose `TopologyPolicy` prefers the client's zone. It is written last of all.
    pub(crate) fn sentinel() -> Self {
        let mut zonal = Self::zonal(99);
        "sentinel".clone_into(&mut zonal.namespace);
        zonal.services.swap(0, 1);
        zonal.services.truncate(1);
        let service = &mut zonal.services[0];
        "sentinel".clone_into(&mut service.name);
        service.families = &["IPv4"];
        let endpoint = |node: usize| DnsEndpoint {
            address: Ipv4Addr::new(10, 255, 0, u8::try_from(node).unwrap()).into(),
            hostname: None,
            node,
            is_ready: true,
            is_serving: true,
            is_terminating: false,
        };
        service.slices = vec![DnsSlice {
            family: "IPv4",
            ports: vec![("http", "TCP", 8080)],
            endpoints: vec![endpoint(1), endpoint(4)],
        }];
        zonal
    }

    /// The objects, each with the path of its collection.
    pub(crate) fn objects(&self) -> Vec<(String, Value)> {
        let namespace = &self.namespace;
        let mut objects = Vec::new();
        for service in &self.services {
            let path = format!("/api/v1/namespaces/{namespace}/services");
            objects.push((path, service.object(namespace)));
            let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
            let slices = service.slices.iter().enumerate();
            objects.extend(slices.map(|(part, slice)| {
                let name = format!("{}-{part}", service.name);
                (path.clone(), slice.object(namespace, &name, &service.name))
            }));
        }
        objects
    }

    /// The policy for Services with the label.
    pub(crate) fn policy(&self) -> (String, Value) {
        let group = "topology.ipvs-topo.io/v1alpha1";
        let namespace = &self.namespace;
        let policy = json!({
            "apiVersion": group, "kind": "TopologyPolicy",
            "metadata": {"name": "zonal", "namespace": namespace},
            "spec": {
                "mode": "Prefer",
                "levels": [{"name": "zone", "key": "topology.kubernetes.io/zone"}, {"name": "any", "any": true}],
                "serviceSelector": {"matchLabels": {"tier": "zonal"}},
            },
        });
        let path = format!("/apis/{group}/namespaces/{namespace}/topologypolicies");
        (path, policy)
    }
}

/// The Nodes, each with the path of its collection.
pub(crate) fn nodes() -> Vec<(String, Value)> {
    let nodes = ZONES.iter().enumerate().map(|(index, zone)| {
        let (name, range) = (
            format!("n{}", index + 1),
            format!("127.0.{}.0/24", index + 1),
        );
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone,
            }},
            "spec": {"podCIDR": range, "podCIDRs": [range]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        ("/api/v1/nodes".to_owned(), node)
    });
    nodes.collect()
}

fn service(dice: &mut Dice, number: u8, namespace: &str, index: usize) -> DnsService {
    let families = dice.of(&FAMILIES);
    let mut ports: Vec<DnsPort> = PORTS.into_iter().filter(|_| dice.is(45)).collect();
    let kind = match dice.roll(7) {
        0 => ServiceKind::ExternalName(external_name(dice, namespace, index)),
        1..=2 => {
            if ports.is_empty() {
                ports.push(("", "TCP", 80));
            }
            let addresses = families
                .iter()
                .map(|family| cluster_ip(number, index, family));
            ServiceKind::ClusterIps(addresses.collect())
        }
        _ => ServiceKind::Headless,
    };
    if dice.is(25) && ports.len() == 1 {
        ports[0].0 = "";
    }
    let publishes_not_ready = dice.is(15);
    // Pods of two Services.
    let is_shared = dice.is(25);
    let pods = index.saturating_sub(usize::from(is_shared));
    let mut slices = slices(dice, number, pods, families, &ports);
    if matches!(kind, ServiceKind::ExternalName(_)) {
        slices.clear();
    }
    if kind == ServiceKind::Headless && index.is_multiple_of(2) {
        // Slices of another program have a port that the Service does not have.
        for slice in slices.iter_mut().skip(1) {
            slice.ports.push(("metrics", "TCP", 9100));
        }
    }
    if publishes_not_ready {
        // As Kubernetes' own controller writes them.
        for endpoint in slices.iter_mut().flat_map(|slice| &mut slice.endpoints) {
            endpoint.is_ready = true;
        }
    }
    DnsService {
        name: format!("s{index}"),
        is_local: kind == ServiceKind::Headless && dice.is(20),
        kind,
        ports,
        slices,
        publishes_not_ready,
        families,
        annotations: json!({}),
        labels: json!({}),
    }
}

/// Outside, a Service before this one, a Service that does not exist, or an address.
fn external_name(dice: &mut Dice, namespace: &str, index: usize) -> String {
    match dice.roll(7) {
        0 => "www.example.com".to_owned(),
        1 => "absent.example.com".to_owned(),
        2 => "192.0.2.80".to_owned(),
        4.. if index > 0 => format!("s{}.{namespace}.svc.cluster.local", dice.roll(index)),
        _ => format!("gone.{namespace}.svc.cluster.local"),
    }
}

fn cluster_ip(number: u8, index: usize, family: &str) -> IpAddr {
    let [index, third] = [u8::try_from(index + 1).unwrap(), 100 + number];
    match family {
        "IPv6" => {
            let last = u16::from_be_bytes([third, index]);
            Ipv6Addr::new(0xfd00, 0x10, 0x96, 0, 0, 0, 0, last).into()
        }
        _ => Ipv4Addr::new(10, 96, third, index).into(),
    }
}

fn pod_ip(number: u8, pods: usize, family: &str, at: usize) -> IpAddr {
    let [pods, at] = [pods, at].map(|part| u8::try_from(part).unwrap());
    match family {
        "IPv6" => {
            let [number, pods, at] = [number, pods, at].map(u16::from);
            // Some addresses end with zeros.
            Ipv6Addr::new(0xfd00, 0x10, 0x244, number, pods + 1, at, 0, 0).into()
        }
        _ => Ipv4Addr::new(10, 128 + (number & 0x7f), pods, at + 1).into(),
    }
}

fn slices(
    dice: &mut Dice,
    number: u8,
    pods: usize,
    families: &'static [&'static str],
    ports: &[DnsPort],
) -> Vec<DnsSlice> {
    let mut slices = Vec::new();
    for family in families {
        let mut at = 0;
        let mut repeated: Option<DnsEndpoint> = None;
        for _ in 0..dice.roll(4) {
            // The same pod in two slices, as while the controller moves it.
            let mut endpoints: Vec<_> = repeated
                .take()
                .filter(|_| dice.is(30))
                .into_iter()
                .collect();
            for _ in 0..dice.roll(4) {
                endpoints.push(endpoint(dice, pod_ip(number, pods, family, at), at));
                at += 1;
            }
            repeated = endpoints.first().cloned();
            let target = dice.of(&[8080, 9090]);
            let ports = ports.iter().filter(|_| !dice.is(8));
            slices.push(DnsSlice {
                family,
                ports: ports
                    .map(|(name, protocol, port)| (*name, *protocol, target + port))
                    .collect(),
                endpoints,
            });
        }
    }
    slices
}

fn endpoint(dice: &mut Dice, address: IpAddr, at: usize) -> DnsEndpoint {
    let is_ready = dice.is(60);
    let is_terminating = !is_ready && dice.is(60);
    DnsEndpoint {
        address,
        // Of both families: the address says it.
        hostname: at.is_multiple_of(3).then(|| format!("pod-{}", at % 6)),
        node: 1 + dice.roll(ZONES.len()),
        is_ready,
        is_serving: is_ready || is_terminating && dice.is(70),
        is_terminating,
    }
}

fn with_endpoints(number: u8, name: &str, count: u8) -> DnsService {
    let endpoints: Vec<_> = (0..count)
        .map(|at| DnsEndpoint {
            address: Ipv4Addr::new(10, 128 + number, 100 + count, at + 1).into(),
            hostname: None,
            node: 1,
            is_ready: true,
            is_serving: true,
            is_terminating: false,
        })
        .collect();
    let slices = endpoints.chunks(IN_SLICE).map(|endpoints| DnsSlice {
        family: "IPv4",
        ports: vec![("http", "TCP", 8080)],
        endpoints: endpoints.to_vec(),
    });
    DnsService {
        name: name.to_owned(),
        kind: ServiceKind::Headless,
        ports: vec![PORTS[0]],
        slices: slices.collect(),
        is_local: false,
        publishes_not_ready: false,
        families: &["IPv4"],
        annotations: json!({}),
        labels: json!({}),
    }
}

impl DnsService {
    fn object(&self, namespace: &str) -> Value {
        let policy = if self.families.len() > 1 {
            "RequireDualStack"
        } else {
            "SingleStack"
        };
        let mut spec = match &self.kind {
            ServiceKind::ExternalName(target) => {
                json!({"type": "ExternalName", "externalName": target})
            }
            ServiceKind::Headless => json!({
                "clusterIP": "None", "clusterIPs": ["None"],
                "ipFamilies": self.families, "ipFamilyPolicy": policy,
            }),
            ServiceKind::ClusterIps(addresses) => json!({
                "clusterIP": addresses[0], "clusterIPs": addresses,
                "ipFamilies": self.families, "ipFamilyPolicy": policy,
            }),
        };
        let ports = self.ports.iter().map(
            |(name, protocol, port)| json!({"name": name, "protocol": protocol, "port": port}),
        );
        spec["ports"] = ports.collect();
        spec["publishNotReadyAddresses"] = json!(self.publishes_not_ready);
        if self.is_local {
            spec["internalTrafficPolicy"] = json!("Local");
        }
        json!({
            "apiVersion": "v1", "kind": "Service", "spec": spec,
            "metadata": {
                "name": self.name, "namespace": namespace,
                "labels": self.labels, "annotations": self.annotations,
            },
        })
    }
}

impl DnsSlice {
    /// The same pods with addresses of another family.
    fn of_other_family(&self, family: &'static str) -> Self {
        let mut other = self.clone();
        other.family = family;
        for endpoint in &mut other.endpoints {
            endpoint.address = match endpoint.address {
                IpAddr::V4(v4) => {
                    let [_, number, pods, at] = v4.octets().map(u16::from);
                    Ipv6Addr::new(0xfd00, 0x10, 0x245, number, pods, at, 0, 1).into()
                }
                IpAddr::V6(v6) => {
                    let [.., number, pods, at, _, _] = v6.segments();
                    let [number, pods, at] = [number, pods, at].map(|it| u8::try_from(it).unwrap());
                    Ipv4Addr::new(10, 250 - (number & 0xf), pods, at).into()
                }
            };
        }
        other
    }

    fn object(&self, namespace: &str, name: &str, service: &str) -> Value {
        let ports = self.ports.iter().map(
            |(name, protocol, port)| json!({"name": name, "protocol": protocol, "port": port}),
        );
        let endpoints = self.endpoints.iter().map(|endpoint| {
            let mut object = json!({
                "addresses": [endpoint.address],
                "nodeName": format!("n{}", endpoint.node),
                "zone": ZONES[endpoint.node - 1],
                "conditions": {
                    "ready": endpoint.is_ready, "serving": endpoint.is_serving,
                    "terminating": endpoint.is_terminating,
                },
            });
            if let Some(hostname) = &endpoint.hostname {
                object["hostname"] = json!(hostname);
            }
            object
        });
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": self.family,
            "ports": ports.collect::<Vec<_>>(),
            "endpoints": endpoints.collect::<Vec<_>>(),
        })
    }
}
