//! The PodMaps and PodLocators of Pods that come, move and die, while writes succeed, fail or wait.

mod addresses;

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use topology_core::model::ObjectName;

use crate::state::{Collection, State, Wait, Write, WriteKind};

const NOW: i64 = 1_795_291_200_000;

/// The objects of an API server.
#[derive(Debug, Default)]
struct Server {
    objects: BTreeMap<(Collection, ObjectName), Value>,
    version: u64,
}

impl Server {
    /// Applies a write as an API server does; the answer, or `None` for a refusal.
    fn write(&mut self, write: &Write) -> Option<Value> {
        let key = (write.collection, write.name.clone());
        let known = self.objects.get(&key);
        match write.kind {
            WriteKind::Create if known.is_none() => {}
            WriteKind::Replace => {
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                if version(known?) != version(&write.body) {
                    return None;
                }
            }
            WriteKind::Delete => return self.objects.remove(&key).map(|_| json!({})),
            WriteKind::Create | WriteKind::Status | WriteKind::Merge => return None,
        }
        self.version += 1;
        let mut object = write.body.clone();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(key, object.clone());
        Some(object)
    }

    /// Writes plans until nothing is left to write; returns the writes.
    fn settle(&mut self, state: &mut State) -> Vec<Write> {
        state.plan(NOW);
        let mut all = Vec::new();
        loop {
            let writes = state.plan_pods(|_, _| Wait::No);
            if writes.is_empty() {
                return all;
            }
            for write in writes {
                let answer = self.write(&write).unwrap();
                state.record_write(&write, answer);
                all.push(write);
            }
        }
    }

    fn spec(&self, collection: Collection, namespace: &str, name: &str) -> Option<&Value> {
        let name = ObjectName::new(namespace, name);
        self.objects.get(&(collection, name))?.get("spec")
    }

    /// The spec of a PodMap, as `{address: namespace/name}`.
    fn map(&self, node: &str) -> Value {
        let spec = self.spec(Collection::PodMaps, "", node);
        spec.map_or(Value::Null, |spec| spec["pods"].clone())
    }
}

fn node(name: &str, zone: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": zone, "pool": "web" } } })
}

/// A Pod in the namespace `shop` with the UID `NAME-CREATED`, created at second CREATED of a minute.
fn pod(name: &str, node: &str, addresses: &[&str], created: u8) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
    json!({
        "metadata": {
            "namespace": "shop", "name": name, "uid": format!("{name}-{created}"),
            "creationTimestamp": format!("2026-11-21T19:00:{created:02}Z"),
        },
        "spec": { "nodeName": node },
        "status": { "phase": "Running", "podIPs": addresses },
    })
}

fn name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

/// A state with the Nodes `n1` in zone a and `n2` in zone b.
fn two_nodes() -> State {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a"));
    state.apply(Collection::Nodes, node("n2", "b"));
    state
}

#[test]
fn a_pod_of_both_families_is_in_the_map_of_its_node_and_has_a_locator() {
    let (mut state, mut server) = (two_nodes(), Server::default());
    let dual = pod("cart-0", "n1", &["fd00:1::7", "10.244.1.7"], 1);
    state.apply(Collection::Pods, dual);
    server.settle(&mut state);
    let pods = json!({ "10.244.1.7": "shop/cart-0", "fd00:1::7": "shop/cart-0" });
    assert_eq!(server.map("n1"), pods);
    assert_eq!(server.map("n2"), Value::Null);
    let locator = &server.objects[&(Collection::PodLocators, name("cart-0"))];
    assert_eq!(
        locator["spec"],
        json!({
            "nodeName": "n1",
            "addresses": ["10.244.1.7", "fd00:1::7"],
            "nodeLabels": { "topology.kubernetes.io/zone": "a" },
        })
    );
    assert_eq!(locator["metadata"]["ownerReferences"][0]["uid"], "cart-0-1");
    assert_eq!(server.settle(&mut state), [], "nothing is written twice");
}

#[test]
fn a_pod_without_an_address_of_its_own_is_nowhere() {
    let mut on_host = pod("a", "n1", &["192.0.2.1"], 1);
    on_host["spec"]["hostNetwork"] = true.into();
    let mut ended = pod("b", "n1", &["10.244.1.8"], 1);
    ended["status"]["phase"] = "Succeeded".into();
    let no_address = pod("c", "n1", &[], 1);
    let odd = pod("d", "n1", &["10.244.1"], 1);
    let pending = pod("e", "", &["10.244.1.9"], 1);
    let (mut state, mut server) = (two_nodes(), Server::default());
    for object in [on_host, ended, no_address, odd, pending] {
        state.apply(Collection::Pods, object);
    }
    assert_eq!(server.settle(&mut state), []);
}

#[test]
fn a_relabelled_node_changes_the_locators_of_its_pods_and_no_map() {
    let (mut state, mut server) = (two_nodes(), Server::default());
    state.apply(Collection::Pods, pod("cart-0", "n1", &["10.244.1.7"], 1));
    state.apply(Collection::Pods, pod("cart-1", "n2", &["10.244.2.7"], 1));
    server.settle(&mut state);
    state.apply(Collection::Nodes, node("n1", "c"));
    let writes = server.settle(&mut state);
    let [write] = &writes[..] else {
        panic!("{writes:?}");
    };
    assert_eq!(
        (write.collection, &write.name),
        (Collection::PodLocators, &name("cart-0"))
    );
    let zone = &write.body["spec"]["nodeLabels"]["topology.kubernetes.io/zone"];
    assert_eq!(zone, "c");
    // A policy that uses another label.
    let policy = json!({
        "metadata": { "name": "near", "generation": 1 },
        "spec": { "mode": "Prefer", "levels": [{ "key": "pool" }, { "any": true }] },
    });
    state.apply(Collection::ClusterPolicies, policy);
    assert_eq!(server.settle(&mut state).len(), 2);
    let spec = server
        .spec(Collection::PodLocators, "shop", "cart-1")
        .unwrap();
    assert_eq!(spec["nodeLabels"]["pool"], "web");
}

#[test]
fn an_address_that_is_used_again_belongs_to_the_pod_that_lives() {
    let (mut state, mut server) = (two_nodes(), Server::default());
    state.apply(Collection::Pods, pod("old", "n1", &["10.244.1.7"], 1));
    server.settle(&mut state);
    // A younger Pod does not get the address of one that lives.
    let thief = pod("new", "n2", &["10.244.1.7"], 2);
    state.apply(Collection::Pods, thief);
    server.settle(&mut state);
    assert_eq!(server.map("n1"), json!({ "10.244.1.7": "shop/old" }));
    assert_eq!(server.map("n2"), Value::Null);
    let spec = server.spec(Collection::PodLocators, "shop", "new").unwrap();
    assert_eq!(spec["addresses"], json!([]));

    let mut ending = pod("old", "n1", &["10.244.1.7"], 1);
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T20:00:00Z".into();
    state.apply(Collection::Pods, ending);
    server.settle(&mut state);
    assert_eq!(server.map("n1"), Value::Null);
    assert_eq!(server.map("n2"), json!({ "10.244.1.7": "shop/new" }));

    state.delete(Collection::Pods, &name("new"));
    server.settle(&mut state);
    assert_eq!(server.map("n1"), json!({ "10.244.1.7": "shop/old" }));
    assert_eq!(server.map("n2"), Value::Null);
}

#[test]
fn a_pod_that_dies_between_two_writes_leaves_nothing() {
    let (mut state, mut server) = (two_nodes(), Server::default());
    state.apply(Collection::Pods, pod("cart-0", "n1", &["10.244.1.7"], 1));
    state.plan(NOW);
    let writes = state.plan_pods(|_, _| Wait::No);
    assert_eq!(writes.len(), 2);
    // It dies after the plan; its successor has the same name.
    state.delete(Collection::Pods, &name("cart-0"));
    state.apply(Collection::Pods, pod("cart-0", "n2", &["10.244.2.7"], 2));
    for write in writes {
        let answer = server.write(&write).unwrap();
        state.record_write(&write, answer);
    }
    server.settle(&mut state);
    assert_eq!(server.map("n1"), Value::Null);
    assert_eq!(server.map("n2"), json!({ "10.244.2.7": "shop/cart-0" }));
    let locator = &server.objects[&(Collection::PodLocators, name("cart-0"))];
    assert_eq!(locator["metadata"]["ownerReferences"][0]["uid"], "cart-0-2");
    state.delete(Collection::Pods, &name("cart-0"));
    server.settle(&mut state);
    assert!(server.objects.is_empty(), "{:?}", server.objects);
}

#[test]
fn objects_that_must_wait_do_not_keep_others_from_their_turn() {
    let (mut state, mut server) = (State::default(), Server::default());
    for number in 0..300 {
        let node_name = format!("n{number}");
        state.apply(Collection::Nodes, node(&node_name, "a"));
        let address = format!("10.0.{}.{}", number / 250, number % 250);
        let pod = pod(&format!("p{number}"), &node_name, &[&address], 1);
        state.apply(Collection::Pods, pod);
    }
    state.plan(NOW);
    let written = RefCell::new(Vec::new());
    for _ in 0..3 {
        let writes = state.plan_pods(|collection, name| {
            if written.borrow().contains(&(collection, name.clone())) {
                Wait::ForChanges
            } else {
                Wait::No
            }
        });
        assert_eq!(writes.len(), 200);
        for write in writes {
            // The answer is lost: the state does not learn that the object exists.
            server.write(&write).unwrap();
            written.borrow_mut().push((write.collection, write.name));
        }
    }
    assert_eq!(server.objects.len(), 600);
}

#[test]
fn a_namespace_with_many_changes_does_not_delay_another() {
    let mut state = State::default();
    state.apply(Collection::Nodes, node("n1", "a"));
    for number in 0..200 {
        let address = format!("10.0.0.{number}");
        let pod = pod(&format!("p{number:03}"), "n1", &[&address], 1);
        state.apply(Collection::Pods, pod);
    }
    let mut quiet = pod("db-0", "n1", &["10.0.1.1"], 1);
    quiet["metadata"]["namespace"] = json!("zoo");
    state.apply(Collection::Pods, quiet);
    state.plan(NOW);
    let first = state.plan_pods(|_, _| Wait::No);
    let named: Vec<&ObjectName> = first.iter().map(|write| &write.name).collect();
    assert!(
        named.contains(&&ObjectName::new("zoo", "db-0")),
        "{named:?}"
    );
}

#[derive(Debug, Clone)]
enum Change {
    /// A Pod, its Node, its addresses, its age and whether it terminates.
    Pod(u8, u8, Vec<u8>, u8, bool),
    PodGone(u8),
    Node(u8, bool),
    NodeGone(u8),
    /// Writes a plan; every third write fails if the flag is set.
    Write(bool),
    /// Another client changes or deletes an object.
    Meddle(u8),
    /// The controller starts again.
    Restart,
}

fn change() -> impl Strategy<Value = Change> {
    let addresses = prop::sample::subsequence(vec![1_u8, 2, 3, 4], 0..=3);
    prop_oneof![
        6 => (0..5_u8, 0..3_u8, addresses, 0..4_u8, any::<bool>())
            .prop_map(|(pod, node, addresses, age, ends)| Change::Pod(pod, node, addresses, age, ends)),
        2 => (0..5_u8).prop_map(Change::PodGone),
        2 => (0..3_u8, any::<bool>()).prop_map(|(node, zone)| Change::Node(node, zone)),
        1 => (0..3_u8).prop_map(Change::NodeGone),
        4 => any::<bool>().prop_map(Change::Write),
        1 => any::<u8>().prop_map(Change::Meddle),
        1 => Just(Change::Restart),
    ]
}

/// The Pods and Nodes that exist, and what follows from them by a search of all.
#[derive(Debug, Default)]
struct Model {
    pods: BTreeMap<u8, (u8, Vec<u8>, u8, bool)>,
    /// Each Pod with an address that it reports, in the order in which the controller learned them.
    claims: Vec<(u8, u8)>,
    nodes: BTreeMap<u8, bool>,
}

impl Model {
    /// A Pod of another age is another Pod.
    fn set_pod(&mut self, pod: u8, pod_of: (u8, Vec<u8>, u8, bool)) {
        let is_same = self.pods.get(&pod).is_some_and(|old| old.2 == pod_of.2);
        let stays = |claim: &(u8, u8)| claim.0 != pod || is_same && pod_of.1.contains(&claim.1);
        self.claims.retain(stays);
        for address in &pod_of.1 {
            if !self.claims.contains(&(pod, *address)) {
                self.claims.push((pod, *address));
            }
        }
        if pod_of.1.is_empty() {
            self.pods.remove(&pod);
        } else {
            self.pods.insert(pod, pod_of);
        }
    }

    /// Orders the claims as a controller that starts: those in a PodMap first, then by age.
    fn restart(&mut self, server: &Server) {
        let pods = &self.pods;
        self.claims.sort_by_key(|(pod, address)| {
            let (node, _, age, _) = &pods[pod];
            let map = server.map(&format!("n{node}"));
            (map[format!("10.0.0.{address}")].is_null(), *age, *pod)
        });
    }

    fn owns(&self, pod: u8, address: u8) -> bool {
        let claims = self
            .claims
            .iter()
            .filter(|(_, claimed)| *claimed == address);
        let best = claims.min_by_key(|(name, _)| self.pods[name].3);
        best.is_some_and(|(name, _)| *name == pod)
    }

    fn map(&self, node: u8) -> Value {
        let mut pods = serde_json::Map::new();
        for (name, (on, addresses, ..)) in &self.pods {
            let own = addresses
                .iter()
                .filter(|address| *on == node && self.owns(*name, **address));
            pods.extend(
                own.map(|address| (format!("10.0.0.{address}"), json!(format!("shop/p{name}")))),
            );
        }
        if pods.is_empty() || !self.nodes.contains_key(&node) {
            return Value::Null;
        }
        Value::Object(pods)
    }

    fn locator(&self, pod: u8) -> Value {
        let Some((node, addresses, ..)) = self.pods.get(&pod) else {
            return Value::Null;
        };
        let own = addresses.iter().filter(|address| self.owns(pod, **address));
        let own: Vec<String> = own.map(|address| format!("10.0.0.{address}")).collect();
        let zone = self
            .nodes
            .get(node)
            .map(|zone| if *zone { "a" } else { "b" });
        let labels = zone.map_or(
            json!({}),
            |zone| json!({ "topology.kubernetes.io/zone": zone }),
        );
        json!({ "nodeName": format!("n{node}"), "addresses": own, "nodeLabels": labels })
    }
}

fn pod_object(name: u8, (node, addresses, age, ends): &(u8, Vec<u8>, u8, bool)) -> Value {
    let texts = addresses.iter().map(|one| format!("10.0.0.{one}"));
    let texts: Vec<String> = texts.collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut object = pod(&format!("p{name}"), &format!("n{node}"), &texts, *age);
    if *ends {
        object["metadata"]["deletionTimestamp"] = "2026-11-21T20:00:00Z".into();
    }
    object
}

/// A controller, its API server, and what both should have.
#[derive(Debug, Default)]
struct World {
    state: State,
    server: Server,
    model: Model,
}

impl World {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Pod(name, node, addresses, age, ends) => {
                self.set_pod(name, (node, addresses, age, ends));
            }
            Change::PodGone(pod) => {
                let gone = name(&format!("p{pod}"));
                self.state.delete(Collection::Pods, &gone);
                self.model.set_pod(pod, (0, Vec::new(), 0, false));
            }
            Change::Node(number, zone) => {
                let object = node(&format!("n{number}"), if zone { "a" } else { "b" });
                self.state.apply(Collection::Nodes, object);
                self.model.nodes.insert(number, zone);
            }
            Change::NodeGone(number) => {
                let gone = ObjectName::new("", format!("n{number}"));
                self.state.delete(Collection::Nodes, &gone);
                self.model.nodes.remove(&number);
            }
            Change::Write(fails) => self.write(fails),
            Change::Meddle(number) => self.meddle(number),
            Change::Restart => self.restart(),
        }
    }

    fn restart(&mut self) {
        self.state = State::default();
        for (number, zone) in &self.model.nodes {
            let object = node(&format!("n{number}"), if *zone { "a" } else { "b" });
            self.state.apply(Collection::Nodes, object);
        }
        for (number, pod_of) in self.model.pods.iter().rev() {
            self.state
                .apply(Collection::Pods, pod_object(*number, pod_of));
        }
        for ((collection, _), object) in &self.server.objects {
            self.state.apply(*collection, object.clone());
        }
        self.model.restart(&self.server);
        self.state.plan(NOW);
        self.state.plan_pods(|_, _| Wait::No);
    }

    fn set_pod(&mut self, name: u8, pod_of: (u8, Vec<u8>, u8, bool)) {
        self.state
            .apply(Collection::Pods, pod_object(name, &pod_of));
        self.model.set_pod(name, pod_of);
    }

    fn write(&mut self, fails: bool) {
        self.state.plan(NOW);
        let writes = self.state.plan_pods(|_, _| Wait::No);
        for (number, write) in writes.iter().enumerate() {
            if fails && number % 3 == 0 {
                continue;
            }
            if let Some(answer) = self.server.write(write) {
                self.state.record_write(write, answer);
            }
        }
    }

    fn meddle(&mut self, number: u8) {
        let mut keys = self.server.objects.keys();
        let Some(key) = keys.nth(usize::from(number % 8)).cloned() else {
            return;
        };
        self.server.version += 1;
        if number > 127 {
            self.server.objects.remove(&key);
            self.state.delete(key.0, &key.1);
        } else if let Some(object) = self.server.objects.get_mut(&key) {
            object["spec"] = json!({});
            object["metadata"]["resourceVersion"] = self.server.version.to_string().into();
            self.state.apply(key.0, object.clone());
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_objects_become_those_of_the_pods(changes in prop::collection::vec(change(), 1..40)) {
        let mut world = World::default();
        world.restart();
        for change in changes {
            world.apply(change);
        }
        let World { mut state, mut server, model } = world;
        server.settle(&mut state);
        for number in 0..3 {
            prop_assert_eq!(server.map(&format!("n{number}")), model.map(number), "n{}", number);
        }
        for number in 0..5 {
            let spec = server.spec(Collection::PodLocators, "shop", &format!("p{number}"));
            prop_assert_eq!(spec.cloned().unwrap_or_default(), model.locator(number), "p{}", number);
        }
    }
}
