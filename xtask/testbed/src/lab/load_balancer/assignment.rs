//! Decides which address a Service of type `LoadBalancer` has, and what is written to the Service.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

/// The first three bytes of the addresses, from a range for documentation (RFC 5737).
const RANGE: [u8; 3] = [198, 51, 100];

/// The route of the whole range, `ip`'s notation.
pub(super) const RANGE_ROUTE: &str = "198.51.100.0/24";

/// The finalizer that Kubernetes' service controller uses; a Service with it stays until its route is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// An event of a watch.
#[derive(Debug, Deserialize)]
pub(super) struct ServiceEvent {
    #[serde(rename = "type")]
    kind: String,
    object: WatchedService,
}

#[derive(Debug, Deserialize)]
struct WatchedService {
    metadata: ServiceMetadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceMetadata {
    namespace: String,
    name: String,
    #[serde(default)]
    finalizers: Vec<String>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(rename = "type")]
    kind: String,
    load_balancer_class: Option<String>,
    external_traffic_policy: Option<String>,
    health_check_node_port: Option<u16>,
    session_affinity: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    load_balancer: LoadBalancer,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    ingress: Vec<Ingress>,
}

#[derive(Debug, Deserialize)]
struct Ingress {
    ip: Option<Ipv4Addr>,
}

/// A change of a Service, as a merge patch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Patch {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) is_status: bool,
    pub(super) body: Value,
}

/// An address in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Balanced {
    pub(super) address: Ipv4Addr,
    /// The port that shows which nodes have endpoints; without one, all nodes take the traffic.
    pub(super) health_port: Option<u16>,
    /// Whether a client stays at one node.
    pub(super) has_affinity: bool,
}

/// The Services with an address, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    services: BTreeMap<[String; 2], Balanced>,
}

impl Assignment {
    /// Applies an event, and returns the changes to write.
    pub(super) fn observe(&mut self, event: &ServiceEvent) -> anyhow::Result<Vec<Patch>> {
        let service = &event.object;
        let is_gone = event.kind == "DELETED";
        let is_served = service.spec.kind == "LoadBalancer"
            && service.spec.load_balancer_class.is_none()
            && service.metadata.deletion_timestamp.is_none();
        if is_served && !is_gone {
            self.serve(service)
        } else {
            self.services.remove(&service.key());
            Ok(if is_gone {
                Vec::new()
            } else {
                service.release()
            })
        }
    }

    pub(super) fn balanced(&self) -> impl Iterator<Item = &Balanced> {
        self.services.values()
    }

    fn serve(&mut self, service: &WatchedService) -> anyhow::Result<Vec<Patch>> {
        let known = self.services.get(&service.key());
        let known = known.map(|balanced| balanced.address);
        let address = service.address().or(known);
        let address = match address {
            Some(address) => address,
            None => self
                .free()
                .context("every load balancer address is in use")?,
        };
        let spec = &service.spec;
        let is_local = spec.external_traffic_policy.as_deref() == Some("Local");
        let health_port = spec.health_check_node_port.filter(|_| is_local);
        let balanced = Balanced {
            address,
            health_port,
            has_affinity: spec.session_affinity.as_deref() == Some("ClientIP"),
        };
        self.services.insert(service.key(), balanced);
        let mut patches = Vec::new();
        if !service.has_finalizer() {
            let mut finalizers = service.metadata.finalizers.clone();
            finalizers.push(FINALIZER.to_owned());
            patches.push(service.set_finalizers(&finalizers));
        }
        if service.address().is_none() {
            let ingress = json!([{"ip": address, "ipMode": "VIP"}]);
            patches.push(service.set_ingress(&ingress));
        }
        Ok(patches)
    }

    fn free(&self) -> Option<Ipv4Addr> {
        let is_free = |address: &Ipv4Addr| self.balanced().all(|used| used.address != *address);
        (1..=254).map(address).find(is_free)
    }
}

fn address(last: u8) -> Ipv4Addr {
    let [a, b, c] = RANGE;
    Ipv4Addr::new(a, b, c, last)
}

impl WatchedService {
    fn key(&self) -> [String; 2] {
        [self.metadata.namespace.clone(), self.metadata.name.clone()]
    }

    /// The address of the range in its status.
    fn address(&self) -> Option<Ipv4Addr> {
        let mut ingress = self.status.load_balancer.ingress.iter();
        let ours = |address: &Ipv4Addr| address.octets().starts_with(&RANGE);
        ingress.find_map(|ingress| ingress.ip.filter(ours))
    }

    fn has_finalizer(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter();
        finalizers.any(|name| name == FINALIZER)
    }

    /// Removes what was written when it had an address. The finalizer is last, because the object may end with it.
    fn release(&self) -> Vec<Patch> {
        let mut patches = Vec::new();
        if self.address().is_some() {
            patches.push(self.set_ingress(&Value::Null));
        }
        if self.has_finalizer() {
            let others = self.metadata.finalizers.iter();
            let others: Vec<String> = others.filter(|name| *name != FINALIZER).cloned().collect();
            patches.push(self.set_finalizers(&others));
        }
        patches
    }

    fn set_finalizers(&self, finalizers: &[String]) -> Patch {
        self.patch(false, json!({"metadata": {"finalizers": finalizers}}))
    }

    fn set_ingress(&self, ingress: &Value) -> Patch {
        self.patch(
            true,
            json!({"status": {"loadBalancer": {"ingress": ingress}}}),
        )
    }

    fn patch(&self, is_status: bool, body: Value) -> Patch {
        let [namespace, name] = self.key();
        Patch {
            namespace,
            name,
            is_status,
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, name: &str, more: &Value) -> ServiceEvent {
        let mut object = json!({
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"type": "LoadBalancer"},
        });
        merge(&mut object, more);
        serde_json::from_value(json!({"type": kind, "object": object})).unwrap()
    }

    fn merge(object: &mut Value, more: &Value) {
        let Some(fields) = more.as_object() else {
            *object = more.clone();
            return;
        };
        for (name, value) in fields {
            merge(&mut object[name], value);
        }
    }

    fn with_address(last: u8) -> Value {
        json!({
            "metadata": {"finalizers": ["other", FINALIZER]},
            "status": {"loadBalancer": {"ingress": [{"ip": address(last)}]}},
        })
    }

    fn bodies(patches: &[Patch]) -> Vec<Value> {
        patches.iter().map(|patch| patch.body.clone()).collect()
    }

    #[test]
    fn each_service_gets_its_own_address_a_finalizer_and_a_status() {
        let mut assignment = Assignment::default();
        let first = assignment
            .observe(&event("ADDED", "a", &json!({})))
            .unwrap();
        let expected = [
            json!({"metadata": {"finalizers": [FINALIZER]}}),
            json!({"status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.1", "ipMode": "VIP"}]}}}),
        ];
        assert_eq!(bodies(&first), expected);
        assert_eq!([first[0].is_status, first[1].is_status], [false, true]);
        let second = assignment
            .observe(&event("ADDED", "b", &json!({})))
            .unwrap();
        assert!(second[1].body.to_string().contains("198.51.100.2"));
    }

    #[test]
    fn an_address_in_the_status_is_kept_and_nothing_is_written_again() {
        let mut assignment = Assignment::default();
        let known = event("ADDED", "a", &with_address(7));
        assert_eq!(assignment.observe(&known).unwrap(), []);
        let balanced: Vec<_> = assignment.balanced().collect();
        assert_eq!(balanced[0].address, address(7));
        let new = assignment
            .observe(&event("ADDED", "b", &json!({})))
            .unwrap();
        assert!(new[1].body.to_string().contains("198.51.100.1"));
    }

    #[test]
    fn only_a_local_policy_asks_the_health_check_port() {
        let mut assignment = Assignment::default();
        let mut more = with_address(1);
        more["spec"] = json!({"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000});
        assignment.observe(&event("ADDED", "a", &more)).unwrap();
        let ports = |assignment: &Assignment| -> Vec<_> {
            let balanced = assignment.balanced();
            balanced.map(|one| one.health_port).collect()
        };
        assert_eq!(ports(&assignment), [Some(31000)]);
        more["spec"] = json!({"externalTrafficPolicy": "Cluster"});
        assignment.observe(&event("MODIFIED", "a", &more)).unwrap();
        assert_eq!(ports(&assignment), [None]);
    }

    #[test]
    fn only_session_affinity_keeps_a_client_at_one_node() {
        let mut assignment = Assignment::default();
        for (affinity, expected) in [("None", false), ("ClientIP", true)] {
            let more = json!({"spec": {"sessionAffinity": affinity}});
            assignment.observe(&event("MODIFIED", "a", &more)).unwrap();
            let mut balanced = assignment.balanced();
            assert_eq!(balanced.next().map(|one| one.has_affinity), Some(expected));
        }
    }

    #[test]
    fn another_type_or_a_deletion_frees_the_address_and_removes_the_finalizer() {
        for change in [
            json!({"spec": {"type": "ClusterIP"}}),
            json!({"metadata": {"deletionTimestamp": "2026-11-25T00:00:00Z"}}),
        ] {
            let mut assignment = Assignment::default();
            let mut more = with_address(1);
            assignment.observe(&event("ADDED", "a", &more)).unwrap();
            merge(&mut more, &change);
            let patches = assignment.observe(&event("MODIFIED", "a", &more)).unwrap();
            let expected = [
                json!({"status": {"loadBalancer": {"ingress": null}}}),
                json!({"metadata": {"finalizers": ["other"]}}),
            ];
            assert_eq!(bodies(&patches), expected);
            assert_eq!(assignment.balanced().count(), 0);
            let gone = assignment.observe(&event("DELETED", "a", &more)).unwrap();
            assert_eq!(gone, []);
        }
    }

    #[test]
    fn a_service_of_another_class_belongs_to_another_program() {
        let mut assignment = Assignment::default();
        let more = json!({
            "spec": {"loadBalancerClass": "example.com/internal"},
            "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}},
        });
        assert_eq!(assignment.observe(&event("ADDED", "a", &more)).unwrap(), []);
        assert_eq!(assignment.balanced().count(), 0);
    }
}
