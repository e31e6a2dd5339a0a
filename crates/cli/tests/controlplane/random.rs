//! Random clusters that a real API server accepts.

use serde_json::{Map, Value, json};

/// The namespace of random clusters.
pub(crate) const NAMESPACE: &str = "random";

/// A random number generator with a fixed sequence for each seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % sides as u64).unwrap()
    }

    /// The numbers below `count` in random order.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..count).collect();
        for at in 1..count {
            numbers.swap(at, self.roll(at + 1));
        }
        numbers
    }

    /// True with a probability of `percent`.
    fn is(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        *choices.get(self.roll(choices.len())).unwrap()
    }
}

const ZONES: [&str; 3] = ["a", "b", "c"];

/// Annotations of Services.
const ASKED: [(&str, &str); 6] = [
    ("weights", "node=80,zone=15,*=5"),
    ("weights", "zone=90,*=10"),
    ("weights", "zone=100,*=0"),
    ("keys", "zone,*"),
    ("keys", "node,zone,region,*"),
    ("policy", "named"),
];

/// The objects of a cluster, each with the path of its collection.
pub(crate) fn cluster(seed: u64) -> Vec<(String, Value)> {
    let mut dice = Dice::new(seed);
    let nodes = 2 + dice.roll(4);
    let mut objects: Vec<_> = (0..nodes)
        .map(|index| ("/api/v1/nodes".to_owned(), node(&mut dice, index)))
        .collect();
    for index in 0..=dice.roll(4) {
        service(&mut dice, index, nodes, &mut objects);
    }
    policies(&mut dice, &mut objects);
    objects
}

fn node(dice: &mut Dice, index: usize) -> Value {
    let name = format!("n{index}");
    let ready = if dice.is(85) { "True" } else { "False" };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/region": "r",
            "topology.kubernetes.io/zone": dice.of(&ZONES),
            "example.com/rack": dice.of(&["1", "2", "3", "4"]),
        }},
        "status": {
            "addresses": [{"type": "InternalIP", "address": format!("192.168.7.{index}")}],
            "allocatable": {"cpu": dice.of(&["2", "4", "3920m"])},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    })
}

fn service(dice: &mut Dice, index: usize, nodes: usize, objects: &mut Vec<(String, Value)>) {
    let name = format!("s{index}");
    let dual = dice.is(30);
    let families: &[&str] = if dual { &["IPv4", "IPv6"] } else { &["IPv4"] };
    let addresses = [
        format!("10.96.200.{index}"),
        format!("fd00:10:96::c80{index}"),
    ];
    let addresses = if dice.is(10) {
        vec!["None".to_owned()]
    } else {
        addresses.into_iter().take(families.len()).collect()
    };
    let ports = ports(dice);
    let mut spec = json!({
        "clusterIP": addresses.first(), "clusterIPs": addresses, "ipFamilies": families,
        "ipFamilyPolicy": if dual { "RequireDualStack" } else { "SingleStack" }, "ports": ports,
    });
    let more = spec.as_object_mut().unwrap();
    if dice.is(20) {
        more.insert("sessionAffinity".to_owned(), json!("ClientIP"));
        more.insert(
            "sessionAffinityConfig".to_owned(),
            json!({"clientIP": {"timeoutSeconds": 60 + dice.roll(900)}}),
        );
    }
    if dice.is(15) {
        more.insert("internalTrafficPolicy".to_owned(), json!("Local"));
    }
    if dice.is(25) {
        more.insert("trafficDistribution".to_owned(), json!("PreferClose"));
    }
    let mut annotations = Map::new();
    if dice.is(50) {
        let (key, value) = dice.of(&ASKED);
        annotations.insert(format!("topology.ipvs-topo.io/{key}"), json!(value));
    }
    let mut labels = json!({"tier": dice.of(&["front", "back"])});
    if dice.is(10) {
        let other = "service.kubernetes.io/service-proxy-name".to_owned();
        labels
            .as_object_mut()
            .unwrap()
            .insert(other, json!("other"));
    }
    let metadata =
        json!({"name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations});
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec});
    objects.push((format!("/api/v1/namespaces/{NAMESPACE}/services"), object));
    for family in families {
        for part in 0..=dice.roll(2) {
            slice(dice, &name, index, family, part, &ports, nodes, objects);
        }
    }
}

fn ports(dice: &mut Dice) -> Value {
    let protocol = dice.of(&["TCP", "TCP", "UDP", "SCTP"]);
    let mut ports =
        vec![json!({"name": "main", "protocol": protocol, "port": 80, "targetPort": 8080})];
    if dice.is(30) {
        ports.push(json!({"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 5353}));
    }
    json!(ports)
}

#[expect(clippy::too_many_arguments, reason = "the parts of one slice")]
fn slice(
    dice: &mut Dice,
    service: &str,
    index: usize,
    family: &str,
    part: usize,
    ports: &Value,
    nodes: usize,
    objects: &mut Vec<(String, Value)>,
) {
    let endpoints: Vec<_> = (0..dice.roll(6))
        .map(|at| {
            let address = match family {
                "IPv6" => format!("fd00:10:244::{}:{}:{}", index + 1, part + 1, at + 1),
                _ => format!("10.244.{}.{}", index * 2 + part, at + 1),
            };
            endpoint(dice, &address, nodes)
        })
        .collect();
    let ports: Vec<_> = ports.as_array().unwrap().iter().map(|port| {
        let field = |name: &str| port.get(name).cloned().unwrap();
        json!({"name": field("name"), "protocol": field("protocol"), "port": field("targetPort")})
    }).collect();
    let name = format!("{service}-{}-{part}", family.to_lowercase());
    let labels = json!({"kubernetes.io/service-name": service});
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "addressType": family, "ports": ports, "endpoints": endpoints,
    });
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices");
    objects.push((path, object));
}

fn endpoint(dice: &mut Dice, address: &str, nodes: usize) -> Value {
    let ready = dice.is(80);
    let terminating = !ready && dice.is(50);
    let mut endpoint = json!({
        "addresses": [address],
        "conditions": {"ready": ready, "serving": ready || dice.is(50), "terminating": terminating},
        "nodeName": format!("n{}", dice.roll(nodes)),
        "zone": dice.of(&ZONES),
    });
    if dice.is(30) {
        let zone = dice.of(&ZONES);
        endpoint
            .as_object_mut()
            .unwrap()
            .insert("hints".to_owned(), json!({"forZones": [{"name": zone}]}));
    }
    endpoint
}

fn policies(dice: &mut Dice, objects: &mut Vec<(String, Value)>) {
    const OURS: &str = "/apis/topology.ipvs-topo.io/v1alpha1";
    let object = |kind: &str, metadata: Value, spec: Value| json!({"apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
    let levels = |near: usize| {
        json!([
            {"name": "zone", "key": "topology.kubernetes.io/zone", "weight": near},
            {"name": "any", "any": true, "weight": 100 - near},
        ])
    };
    if dice.is(40) {
        let spec = json!({"mode": "Weighted", "levels": levels(50 + dice.roll(50)), "serviceSelector": {"matchLabels": {"tier": "back"}}});
        let metadata = json!({"name": "named", "namespace": NAMESPACE});
        let path = format!("{OURS}/namespaces/{NAMESPACE}/topologypolicies");
        objects.push((path, object("TopologyPolicy", metadata, spec)));
    }
    if dice.is(40) {
        let team = dice.of(&["x", "unused"]);
        let mut spec = json!({"mode": "Weighted", "priority": dice.roll(1000), "levels": levels(50 + dice.roll(50))});
        if dice.is(50) {
            let selector = json!({"matchLabels": {"team": team}});
            spec.as_object_mut()
                .unwrap()
                .insert("namespaceSelector".to_owned(), selector);
        }
        let path = format!("{OURS}/clustertopologypolicies");
        objects.push((
            path,
            object("ClusterTopologyPolicy", json!({"name": "default"}), spec),
        ));
    }
    if dice.is(20) {
        let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
        let domain = json!({"key": "topology.kubernetes.io/zone", "values": [dice.of(&ZONES)]});
        let spec = json!({"match": domain, "expiresAt": format!("{end:.0}"), "rampSeconds": 0});
        objects.push((
            format!("{OURS}/topologydrains"),
            object("TopologyDrain", json!({"name": "drain"}), spec),
        ));
    }
}
