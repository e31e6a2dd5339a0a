//! What the API objects say about a frontend, by the rules of the Kubernetes API alone: nothing here uses our own code.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::Value;

/// The node of the guest, its zone label and its addresses.
pub(crate) const NODE: &str = "n0";
const NODE_ADDRESSES: [&str; 2] = ["192.168.7.1", "fd00:7::1"];

const ZONE: &str = "/metadata/labels/topology.kubernetes.io~1zone";

/// The objects of a cluster.
pub(crate) struct Facts {
    services: Vec<Value>,
    slices: Vec<Value>,
    zone: Option<String>,
    node_addresses: BTreeSet<String>,
}

/// The field of a Service that a frontend comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ClusterIp,
    NodePort,
    ExternalIp,
    LoadBalancer,
}

/// A port of a Service at one address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) service: &'a Value,
    pub(crate) port: &'a Value,
    pub(crate) kind: Kind,
}

/// The endpoints of a Service port in one family, by traffic policy.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) cluster: BTreeSet<String>,
    pub(crate) local: BTreeSet<String>,
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn texts<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    items(value, pointer)
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

impl Facts {
    /// Reads a list as of `kubectl get -o json`.
    pub(crate) fn of(list: &Value) -> Self {
        let of_kind = |kind: &'static str| {
            let items = items(list, "/items").iter();
            items.filter(move |item| text(item, "/kind") == kind)
        };
        let name = |item: &&&Value| text(item, "/metadata/name") == NODE;
        let own = of_kind("Node").find(|item| name(&item));
        let nodes = of_kind("Node").flat_map(|node| items(node, "/status/addresses"));
        Self {
            services: of_kind("Service").cloned().collect(),
            slices: of_kind("EndpointSlice").cloned().collect(),
            zone: own.map(|node| text(node, ZONE).to_owned()),
            node_addresses: nodes.map(|one| text(one, "/address").to_owned()).collect(),
        }
    }

    /// The Service of this namespace and name.
    pub(crate) fn service(&self, namespace: &str, name: &str) -> Option<&Value> {
        let mut services = self.services.iter();
        services.find(|service| {
            text(service, "/metadata/namespace") == namespace
                && text(service, "/metadata/name") == name
        })
    }

    /// Every Service port at every address, with the key of each.
    pub(crate) fn all_claims(&self) -> impl Iterator<Item = (String, Claim<'_>)> {
        self.services.iter().flat_map(claims_of)
    }

    /// Every Service port at the address that `key` names, such as `-t 10.96.0.10:80`.
    pub(crate) fn claims(&self, key: &str) -> Vec<Claim<'_>> {
        self.all_claims()
            .filter(|(claimed, _)| claimed == key)
            .map(|(_, claim)| claim)
            .collect()
    }

    /// Whether the address in `key` is that of another Node.
    pub(crate) fn is_of_other_node(&self, key: &str) -> bool {
        let address = address_of(key);
        self.node_addresses.contains(&address) && !NODE_ADDRESSES.contains(&&*address)
    }

    /// The endpoints of a port, as `internalTrafficPolicy`, the conditions and the hints of EndpointSlices are
    /// documented: ready ones, else those that terminate and still serve.
    pub(crate) fn lists(&self, claim: Claim<'_>, is_v6: bool) -> Lists {
        let endpoints = self.endpoints(claim, is_v6);
        let zone = self.zone.as_deref().unwrap_or("");
        let chosen = |choose: &dyn Fn(&Endpoint<'_>) -> bool| -> BTreeSet<String> {
            let chosen = endpoints.values().filter(|one| choose(one));
            chosen.map(|one| one.at.clone()).collect()
        };
        // Hints count only if every ready endpoint has some.
        let hinted = |field: &str, mine: &str| {
            let mut ready = endpoints.values().filter(|one| one.ready);
            let all = ready.all(|one| !one.hints(field).is_empty());
            chosen(&|one| all && !mine.is_empty() && one.ready && one.hints(field).contains(&mine))
        };
        let first = |lists: Vec<BTreeSet<String>>| {
            let mut lists = lists.into_iter();
            lists.find(|list| !list.is_empty()).unwrap_or_default()
        };
        Lists {
            cluster: first(vec![
                hinted("forNodes", NODE),
                hinted("forZones", zone),
                chosen(&|one| one.ready),
                chosen(&|one| one.last_resort),
            ]),
            local: first(vec![
                chosen(&|one| one.ready && one.local),
                chosen(&|one| one.last_resort && one.local),
            ]),
        }
    }

    fn endpoints(&self, claim: Claim<'_>, is_v6: bool) -> BTreeMap<String, Endpoint<'_>> {
        let [namespace, name] =
            ["namespace", "name"].map(|field| text(claim.service, &format!("/metadata/{field}")));
        let family = if is_v6 { "IPv6" } else { "IPv4" };
        let mut found = BTreeMap::new();
        for slice in &self.slices {
            let is_its = text(slice, "/metadata/namespace") == namespace
                && text(slice, "/metadata/labels/kubernetes.io~1service-name") == name
                && text(slice, "/addressType") == family;
            let ports = items(slice, "/ports").iter();
            let mut ports = ports.filter(|port| {
                let same = |field: &str| text(port, field) == text(claim.port, field);
                same("/name") && same("/protocol")
            });
            let number = ports.next().and_then(|port| port.get("port")?.as_u64());
            if let (true, Some(number)) = (is_its, number) {
                for object in items(slice, "/endpoints") {
                    let endpoint = Endpoint::new(object, number);
                    found.insert(endpoint.at.clone(), endpoint);
                }
            }
        }
        found
    }
}

struct Endpoint<'a> {
    object: &'a Value,
    at: String,
    local: bool,
    ready: bool,
    last_resort: bool,
}

impl<'a> Endpoint<'a> {
    fn new(object: &'a Value, port: u64) -> Self {
        let condition = |name: &str, absent: bool| {
            let value = object.pointer(&format!("/conditions/{name}"));
            value.and_then(Value::as_bool).unwrap_or(absent)
        };
        let ready = condition("ready", true);
        Self {
            object,
            at: at(text(object, "/addresses/0"), port),
            local: text(object, "/nodeName") == NODE,
            ready,
            last_resort: condition("serving", true) && condition("terminating", false),
        }
    }
}

impl Endpoint<'_> {
    fn hints(&self, field: &str) -> Vec<&str> {
        let hints = items(self.object, &format!("/hints/{field}")).iter();
        hints.map(|hint| text(hint, "/name")).collect()
    }
}

fn at(address: &str, port: u64) -> String {
    let port = u16::try_from(port).unwrap();
    SocketAddr::new(address.parse().unwrap(), port).to_string()
}

/// The address in a key such as `-t [fd00::1]:80`.
fn address_of(key: &str) -> String {
    let place = key.rsplit(' ').next().unwrap();
    let place: SocketAddr = place.parse().unwrap();
    place.ip().to_string()
}

/// The frontends of a Service on this node, each with its key.
fn claims_of(service: &Value) -> Vec<(String, Claim<'_>)> {
    let other = "/metadata/labels/service.kubernetes.io~1service-proxy-name";
    if text(service, "/spec/type") == "ExternalName"
        || text(service, "/spec/clusterIP") == "None"
        || service.pointer(other).is_some()
    {
        return Vec::new();
    }
    let families = texts(service, "/spec/ipFamilies");
    let has_family = |address: &&str| {
        let family = if address.contains(':') {
            "IPv6"
        } else {
            "IPv4"
        };
        families.contains(&family)
    };
    let ingress = items(service, "/status/loadBalancer/ingress").iter();
    let ingress = ingress.filter(|entry| text(entry, "/ipMode") != "Proxy");
    let ingress = ingress
        .map(|entry| text(entry, "/ip"))
        .filter(|ip| !ip.is_empty());
    let places = [
        (Kind::ClusterIp, texts(service, "/spec/clusterIPs")),
        (Kind::NodePort, NODE_ADDRESSES.to_vec()),
        (Kind::ExternalIp, texts(service, "/spec/externalIPs")),
        (Kind::LoadBalancer, ingress.collect()),
    ];
    let mut claims = Vec::new();
    for port in items(service, "/spec/ports") {
        for (kind, addresses) in &places {
            let field = if *kind == Kind::NodePort {
                "nodePort"
            } else {
                "port"
            };
            let Some(number) = port.get(field).and_then(Value::as_u64) else {
                continue;
            };
            for address in addresses.iter().filter(|address| has_family(address)) {
                let option = match text(port, "/protocol") {
                    "UDP" => "-u",
                    "SCTP" => "--sctp-service",
                    _ => "-t",
                };
                let key = format!("{option} {}", at(address, number));
                let claim = Claim {
                    service,
                    port,
                    kind: *kind,
                };
                claims.push((key, claim));
            }
        }
    }
    claims
}

impl Claim<'_> {
    /// Whether `spec.FIELD` is `Local`.
    pub(crate) fn is_local(&self, field: &str) -> bool {
        text(self.service, &format!("/spec/{field}")) == "Local"
    }

    /// Whether clients outside of the cluster reach the Service.
    pub(crate) fn is_external(&self) -> bool {
        let claims = claims_of(self.service);
        claims
            .iter()
            .any(|(_, claim)| claim.kind != Kind::ClusterIp)
    }
}
