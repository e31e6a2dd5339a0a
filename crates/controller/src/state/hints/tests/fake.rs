//! A fake API server with slices, and objects for tests.

use super::*;

/// 2026-11-21T20:00:00Z.
pub(super) const CREATED: i64 = 1_795_291_200_000;
pub(super) const NOW: i64 = CREATED + 60_000;

/// The slices of an API server, and the state of a controller that reads each change.
pub(super) struct Fake {
    pub(super) state: State,
    pub(super) slices: BTreeMap<String, Value>,
    pub(super) version: u64,
}

impl Fake {
    /// A Service `shop/cart`, and three zones with equal CPU.
    pub(super) fn new() -> Self {
        let mut state = State::new(StateOptions {
            writes_hints: true,
            ..StateOptions::default()
        });
        for collection in Collection::FOR_HINTS {
            state.listed(collection);
        }
        for zone in ["a", "b", "c"] {
            state.apply(Collection::Nodes, node(zone));
        }
        state.apply(Collection::Services, service(&mode_annotation("Auto")));
        Self {
            state,
            slices: BTreeMap::new(),
            version: 0,
        }
    }

    /// Writes the endpoints of a slice, as `manager`.
    pub(super) fn write(
        &mut self,
        manager: &str,
        operation: &str,
        name: &str,
        endpoints: &[Value],
    ) {
        self.version += 1;
        let before = self.slices.get(name);
        let generation =
            before.map_or(0, |slice| slice["metadata"]["generation"].as_u64().unwrap());
        let slice = json!({
            "addressType": if name.ends_with('6') { "IPv6" } else { "IPv4" },
            "metadata": {
                "name": name, "namespace": "shop",
                "labels": { "kubernetes.io/service-name": "cart" },
                "resourceVersion": self.version.to_string(), "generation": generation + 1,
                "managedFields": [
                    { "manager": manager, "operation": operation, "fieldsV1": { "f:endpoints": {} } },
                    { "manager": "labels", "operation": "Update", "fieldsV1": { "f:metadata": {} } },
                ],
            },
            "endpoints": endpoints,
        });
        self.slices.insert(name.to_owned(), slice.clone());
        self.state.apply(Collection::Slices, slice);
    }

    pub(super) fn make(&mut self, name: &str, endpoints: &[Value]) {
        self.write("mesh", "Update", name, endpoints);
    }

    pub(super) fn endpoints(&self, name: &str) -> Vec<Value> {
        self.slices[name]["endpoints"].as_array().unwrap().clone()
    }

    /// Writes the plan; returns the Events and the names of the written slices.
    pub(super) fn settle(&mut self) -> (Vec<(&'static str, String)>, Vec<String>) {
        let mut new = self.state.decide_hints();
        let mut written = Vec::new();
        for write in slice_writes(&mut self.state) {
            let name = write.name.name.to_string();
            let slice = &self.slices[&name];
            assert_eq!(
                write.body["metadata"]["resourceVersion"],
                slice["metadata"]["resourceVersion"]
            );
            let endpoints = write.body["endpoints"].as_array().unwrap().clone();
            assert_eq!(
                bare(&endpoints),
                bare(&self.endpoints(&name)),
                "only hints change"
            );
            self.write(MANAGER, "Update", &name, &endpoints);
            self.state.record_write(&write, self.slices[&name].clone());
            written.push(name);
        }
        assert_eq!(
            slice_writes(&mut self.state),
            [],
            "nothing is written twice"
        );
        new.extend(self.state.decide_hints());
        assert_eq!(self.state.decide_hints(), [], "no Event is recorded twice");
        let events = new
            .into_iter()
            .map(|event| (event.key.1, event.note))
            .collect();
        (events, written)
    }

    /// The hinted zone of each endpoint of all slices.
    pub(super) fn zones(&self) -> Vec<String> {
        let all = self.slices.values();
        let endpoints = all.flat_map(|slice| slice["endpoints"].as_array().unwrap());
        let zone = |endpoint: &Value| value::text(endpoint, "/hints/forZones/0/name").to_owned();
        endpoints.map(zone).collect()
    }
}

pub(super) fn slice_writes(state: &mut State) -> Vec<Write> {
    let planned = state.plan(NOW).into_iter();
    planned
        .filter(|write| write.collection == Collection::Slices)
        .collect()
}

pub(super) fn bare(endpoints: &[Value]) -> Vec<Value> {
    let mut bare = endpoints.to_vec();
    for endpoint in &mut bare {
        endpoint.as_object_mut().unwrap().remove("hints");
    }
    bare
}

pub(super) fn node(zone: &str) -> Value {
    json!({
        "metadata": { "name": zone, "labels": { "topology.kubernetes.io/zone": zone } },
        "status": {
            "allocatable": { "cpu": "4" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

pub(super) fn mode_annotation(mode: &str) -> Value {
    json!({ "service.kubernetes.io/topology-mode": mode })
}

pub(super) fn service(annotations: &Value) -> Value {
    json!({
        "metadata": {
            "name": "cart", "namespace": "shop", "annotations": annotations,
            "creationTimestamp": "2026-11-21T20:00:00Z",
        },
        "spec": { "type": "ClusterIP", "clusterIP": "10.96.0.10" },
    })
}

pub(super) fn endpoint(number: usize, zone: &str) -> Value {
    json!({
        "addresses": [format!("10.1.0.{number}")], "conditions": { "ready": true },
        "hostname": format!("h{number}"), "nodeName": zone, "zone": zone,
    })
}

/// One endpoint in each of these zones.
pub(super) fn endpoints(zones: &str) -> Vec<Value> {
    let zones = zones.split_whitespace().enumerate();
    zones.map(|(number, zone)| endpoint(number, zone)).collect()
}

pub(super) fn hinted(mut endpoints: Vec<Value>, zone: &str) -> Vec<Value> {
    for endpoint in &mut endpoints {
        endpoint["hints"] = json!({ "forZones": [{ "name": zone }] });
    }
    endpoints
}

pub(super) const ENABLED: &str = "TopologyAwareHintsEnabled";
pub(super) const DISABLED: &str = "TopologyAwareHintsDisabled";

pub(super) fn reasons(events: &[(&'static str, String)]) -> Vec<&'static str> {
    events.iter().map(|(reason, _)| *reason).collect()
}

/// Two slices with our hints.
pub(super) fn settled() -> Fake {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a a b c"));
    fake.make("cart-2", &[endpoint(9, "b"), endpoint(10, "c")]);
    let (events, written) = fake.settle();
    assert_eq!(
        (reasons(&events), &written[..]),
        (
            vec![ENABLED],
            &["cart-1".to_owned(), "cart-2".to_owned()][..]
        )
    );
    fake
}
