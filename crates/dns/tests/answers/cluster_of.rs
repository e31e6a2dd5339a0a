//! A cluster from YAML, and questions to its DNS.

use std::net::IpAddr;

use cluster::ServiceSelection;
use cluster::source::{Options, read_text};
use dns::{ClientPlace, DnsAnswer, DnsQuestion, DnsTransport, Responder, ResponderOptions};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use topology_core::address_index::AddressIndex;
use topology_core::snapshot::Snapshot;

/// Three nodes in the zones a, a and b. `nN` has the pods `10.244.N.0/24` and `fd00:N::/64`.
pub(crate) const NODES: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}
spec: {podCIDRs: [10.244.1.0/24, 'fd00:1::/64']}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {topology.kubernetes.io/zone: a}}
spec: {podCIDRs: [10.244.2.0/24, 'fd00:2::/64']}
status: {addresses: [{type: InternalIP, address: 192.0.2.2}]}
---
apiVersion: v1
kind: Node
metadata: {name: n3, labels: {topology.kubernetes.io/zone: b}}
spec: {podCIDRs: [10.244.3.0/24, 'fd00:3::/64']}
status: {addresses: [{type: InternalIP, address: 192.0.2.3}]}
";

/// A headless Service `cart` with an endpoint on each node, and these annotations.
pub(crate) fn headless(annotations: &str) -> String {
    format!(
        "{NODES}---
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop, annotations: {{{annotations}}}}}
spec: {{clusterIP: None, ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints:
- {{addresses: [10.244.1.10], nodeName: n1, hostname: cart-0}}
- {{addresses: [10.244.2.10], nodeName: n2}}
- {{addresses: [10.244.3.10], nodeName: n3}}
"
    )
}

/// A drain of zone b, now.
pub(crate) const DRAIN: &str = "---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyDrain
metadata: {name: b, creationTimestamp: '2026-11-19T00:00:00Z'}
spec: {match: {key: topology.kubernetes.io/zone, values: [b]}, expiresAt: '2026-11-21T00:00:00Z', reason: test}
";

/// A client on the node `n1`.
pub(crate) const CLIENT: &str = "10.244.1.200";

/// The addresses and the port of the server.
const SERVER: [&str; 2] = ["10.244.1.53:53", "[fd00:1::53]:53"];

/// The time of the first question: 2026-11-20.
pub(crate) const NOW: i64 = 1_795_132_800_000;

pub(crate) struct Dns {
    pub(crate) snapshot: Snapshot,
    /// The time of the questions.
    pub(crate) now: i64,
    /// The longest reply that clients take.
    pub(crate) most_bytes: u16,
    responder: Responder,
}

impl Dns {
    /// A server on the node `n1`.
    pub(crate) fn of(yaml: &str) -> Self {
        let options = Options {
            services: ServiceSelection::All,
            now: Some(NOW),
            ..Options::default()
        };
        let loaded = read_text("a.yaml", yaml.as_bytes(), &options).unwrap();
        assert_eq!(loaded.warnings, []);
        let mut dns = Self {
            snapshot: loaded.snapshot,
            now: NOW,
            most_bytes: u16::MAX,
            responder: Responder::new(ResponderOptions {
                domain: name("cluster.local."),
                ttl: 5,
                node: "n1".into(),
                endpoints: SERVER.map(|address| address.parse().unwrap()).into(),
            }),
        };
        dns.update();
        dns
    }

    pub(crate) fn update(&mut self) {
        self.responder.update(&mut self.snapshot);
    }

    /// The Node of a client, and the number of the rule that found it.
    pub(crate) fn place_of(&self, client: &str) -> (String, u8) {
        let client = client.parse().unwrap();
        let addresses = AddressIndex::of(&self.snapshot);
        let place = ClientPlace::find(&self.snapshot, &addresses, &"n1".into(), client);
        assert_eq!(place.node, self.responder.node_of(&self.snapshot, client));
        (place.node.to_string(), place.rule.number())
    }

    pub(crate) fn node_of(&self, client: &str) -> String {
        self.place_of(client).0
    }

    /// The answer for a client; `None` if the name is not ours.
    pub(crate) fn ask_from(
        &mut self,
        client: &str,
        question: &str,
        record_type: RecordType,
    ) -> Option<DnsAnswer> {
        let question = DnsQuestion {
            name: &name(question),
            record_type,
            client: client.parse().unwrap(),
            transport: DnsTransport::Udp,
            most_bytes: self.most_bytes,
            now: self.now,
        };
        let answer = self.responder.answer(&self.snapshot, question)?;
        assert!(answer.soa.is_some() || !answer.records.is_empty());
        Some(answer)
    }

    /// The records of the answer as text, sorted; `NXDOMAIN`, or `NODATA`.
    pub(crate) fn ask(&mut self, question: &str, record_type: RecordType) -> Vec<String> {
        let Some(answer) = self.ask_from(CLIENT, question, record_type) else {
            return vec!["not ours".to_owned()];
        };
        let mut found: Vec<String> = answer.records.iter().map(show).collect();
        found.sort();
        match answer.code {
            ResponseCode::NXDomain => found.push("NXDOMAIN".to_owned()),
            _ if found.is_empty() => found.push("NODATA".to_owned()),
            _ => {}
        }
        found
    }

    /// The IPv4 addresses that the client gets for `cart.shop`, in the order of the answer.
    pub(crate) fn addresses(&mut self, client: &str) -> Vec<String> {
        let answer = self.ask_from(client, "cart.shop.svc.cluster.local.", RecordType::A);
        let records = answer.unwrap().records;
        records
            .iter()
            .filter_map(address)
            .map(|it| it.to_string())
            .collect()
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

pub(crate) fn address(record: &Record) -> Option<IpAddr> {
    match &record.data {
        RData::A(address) => Some(address.0.into()),
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    }
}

/// Type and data of a record.
pub(crate) fn show(record: &Record) -> String {
    assert_eq!(record.ttl, 5);
    format!("{} {}", record.record_type(), record.data)
}
