//! Tests the result of lists and changes, in any order and with interruptions.

mod doubt;
mod drains;
mod label_usage;
mod labels;
mod old_texts;

use std::collections::BTreeMap;

use proptest::prelude::*;
use topology_core::model::{Family, Faults};

use super::*;
use crate::api::Delivery;
use crate::api::watch::resources::cluster_resources;
use crate::clock::Clock;
use crate::event::EndpointTrigger;
use crate::index::Index;
use crate::{AllowLists, ServiceSelection};
use kube_io::decode::Encoding;

const NODES: ResourceId = ResourceId::NODES;
const SERVICES: ResourceId = ResourceId::Objects(Kind::Service);
const SLICES: ResourceId = ResourceId::Objects(Kind::EndpointSlice);
const CIDRS: ResourceId = ResourceId::Objects(Kind::ServiceCidr);
const POLICIES: ResourceId = ResourceId::Objects(Kind::ClusterTopologyPolicy);
const DRAINS: ResourceId = ResourceId::Objects(Kind::TopologyDrain);
const NAMESPACES: ResourceId = ResourceId::Objects(Kind::Namespace);

/// Every resource that is listed at each start.
fn listed_always() -> impl Iterator<Item = ResourceId> {
    let resources = cluster_resources(ServiceSelection::Proxied)
        .into_iter()
        .take(7);
    resources.map(|watched| watched.id)
}

fn resource(id: ResourceId) -> WatchedResource {
    let mut resources = cluster_resources(ServiceSelection::Proxied).into_iter();
    resources.find(|watched| watched.id == id).unwrap()
}

/// An object as a server sends it.
fn object(id: ResourceId, text: &str) -> Node {
    let text = format!(r#"{{"type":"ADDED","object":{text}}}"#);
    let event = Encoding::Json.event(text.as_bytes(), resource(id).resource.type_meta);
    event.unwrap().object
}

fn node(name: &str, zone: &str) -> Node {
    let labels = format!(r#"{{"topology.kubernetes.io/zone":"{zone}"}}"#);
    object(
        NODES,
        &format!(r#"{{"metadata":{{"name":"{name}","labels":{labels}}}}}"#),
    )
}

fn service(name: &str, port: u32) -> Node {
    let spec = format!(
        r#"{{"clusterIP":"10.96.0.1","clusterIPs":["10.96.0.1"],"ports":[{{"port":{port}}}]}}"#
    );
    object(
        SERVICES,
        &format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop"}},"spec":{spec}}}"#),
    )
}

/// A `Reflector`, and an index with all its batches applied.
struct Bench {
    reflector: Reflector,
    index: Index,
}

impl Bench {
    fn new() -> Self {
        Self::with(Relists::Believe)
    }

    fn with(relists: Relists) -> Self {
        let nodes = NodeSource::Nodes { own: "n1".into() };
        let options = WatchOptions {
            nodes,
            clients: ClientNodes::Own,
            delivery: Delivery::Gathered,
            relists,
            allowed: AllowLists {
                annotation_keys: Some(BTreeSet::from(["example.com/rack".into()])),
                ..AllowLists::default()
            },
            services: ServiceSelection::Proxied,
            clock: Clock::at(None),
        };
        Self {
            reflector: Reflector::new(&options, &cluster_resources(ServiceSelection::Proxied)),
            index: Index::new(Vec::new()),
        }
    }

    /// Every resource listed, with these Nodes.
    fn listed(nodes: &[(&str, &str)]) -> Self {
        let mut bench = Self::new();
        bench.list(NODES, nodes.iter().map(|(name, zone)| node(name, zone)));
        for id in listed_always().skip(1) {
            bench.list(id, []);
        }
        bench.deliver();
        bench
    }

    fn list(&mut self, id: ResourceId, objects: impl IntoIterator<Item = Node>) {
        self.reflector.begin(id);
        for object in objects {
            self.reflector.apply_object(id, &object);
        }
        self.reflector.listed(id, Duration::ZERO);
    }

    /// Applies the batches to the index. Returns their events, and the new warnings.
    fn deliver(&mut self) -> (Vec<Event>, Vec<String>) {
        let (mut events, mut warnings) = (Vec::new(), Vec::new());
        while let Some(batch) = self.reflector.take() {
            assert!(batch.events.len() <= BATCH);
            events.extend(batch.events.clone());
            warnings.extend(self.index.apply(batch).iter().map(ToString::to_string));
        }
        (events, warnings)
    }

    fn zones(&self) -> BTreeMap<String, String> {
        let nodes = self.index.snapshot().nodes();
        let zone = |node: &topology_core::model::Node| {
            let zone = node.labels.get("topology.kubernetes.io/zone");
            (node.name.to_string(), zone.unwrap().to_string())
        };
        nodes.map(zone).collect()
    }
}

#[test]
fn the_start_is_complete_when_every_resource_was_listed_and_not_before() {
    let mut bench = Bench::new();
    for id in listed_always().collect::<Vec<_>>().into_iter().rev() {
        assert_eq!(bench.index.completeness(), None);
        bench.list(id, []);
        bench.deliver();
    }
    assert_eq!(bench.index.completeness(), Some(Completeness::Whole));
}

#[test]
fn namespaces_are_waited_for_only_if_a_policy_selects_by_them() {
    let mut bench = Bench::new();
    let policy = r#"{"metadata":{"name":"a"},"spec":{"mode":"None","namespaceSelector":{"matchLabels":{"team":"x"}}}}"#;
    for id in listed_always() {
        let object = (id == POLICIES).then(|| object(POLICIES, policy));
        bench.list(id, object);
    }
    bench.deliver();
    assert!(bench.reflector.needs_namespaces());
    assert_eq!(bench.index.completeness(), None);
    bench.list(NAMESPACES, []);
    bench.deliver();
    assert_eq!(bench.index.completeness(), Some(Completeness::Whole));
}

#[test]
fn a_relist_reports_only_differences() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "a"), ("n3", "a")]);
    bench.list(NODES, [node("n1", "a"), node("n2", "b")]);
    let (events, _) = bench.deliver();
    assert_eq!(events.len(), 2, "{events:?}");
    let expected =
        [("n1", "a"), ("n2", "b")].map(|(name, zone)| (name.to_owned(), zone.to_owned()));
    assert_eq!(bench.zones(), BTreeMap::from(expected));
}

#[test]
fn a_list_that_breaks_in_the_middle_removes_nothing_nor_does_the_one_after_it_forget() {
    let mut bench = Bench::listed(&[("n1", "a"), ("n2", "a"), ("n3", "a")]);
    bench.reflector.begin(NODES);
    bench.reflector.apply_object(NODES, &node("n1", "a"));
    bench.reflector.apply_object(NODES, &node("n4", "a"));
    // The list breaks here, and begins again.
    bench.reflector.begin(NODES);
    bench.deliver();
    assert_eq!(
        bench.zones().len(),
        4,
        "no object is removed that may still exist"
    );
    bench.reflector.apply_object(NODES, &node("n2", "a"));
    bench.reflector.listed(NODES, Duration::ZERO);
    bench.deliver();
    assert_eq!(bench.zones().into_keys().collect::<Vec<_>>(), ["n2"]);
}

#[test]
fn a_heartbeat_changes_nothing() {
    let mut bench = Bench::listed(&[]);
    let beat = |second: u32| {
        let conditions = format!(
            r#"[{{"type":"Ready","status":"True","lastHeartbeatTime":"2026-11-21T20:00:{second:02}Z"}}]"#
        );
        object(
            NODES,
            &format!(
                r#"{{"metadata":{{"name":"n1","resourceVersion":"{second}"}},"status":{{"conditions":{conditions}}}}}"#
            ),
        )
    };
    bench.reflector.apply_object(NODES, &beat(1));
    assert_eq!(bench.deliver().0.len(), 1);
    for second in 2..30 {
        bench.reflector.apply_object(NODES, &beat(second));
        assert_eq!(bench.reflector.take(), None);
    }
}

/// KP-IN-18
#[test]
fn a_changed_slice_comes_with_the_time_of_its_cause() {
    let slice = |address: &str, second: &str| {
        let time = format!("endpoints.kubernetes.io/last-change-trigger-time\":\"{second}");
        object(
            SLICES,
            &format!(
                r#"{{"metadata":{{"name":"cart-1","namespace":"shop","labels":{{"kubernetes.io/service-name":"cart"}},"annotations":{{"{time}"}}}},"addressType":"IPv4","ports":[],"endpoints":[{{"addresses":["{address}"]}}]}}"#
            ),
        )
    };
    let mut bench = Bench::new();
    let first = slice("10.244.1.1", "2026-11-26T10:00:00Z");
    for id in listed_always().collect::<Vec<_>>() {
        bench.list(id, (id == SLICES).then(|| first.clone()));
    }
    let triggers = |events: Vec<Event>| {
        let triggers = events.into_iter().filter_map(|event| match event {
            Event::Triggered(EndpointTrigger { family, at }) => Some((family, at.to_string())),
            _ => None,
        });
        triggers.collect::<Vec<_>>()
    };
    let of_first_list = triggers(bench.deliver().0);
    assert!(of_first_list.is_empty(), "{of_first_list:?}");
    let mut changed = |slice: &Node| {
        bench.reflector.apply_object(SLICES, slice);
        triggers(bench.deliver().0)
    };
    let time = "2026-11-26T10:00:01.5Z";
    let moved = slice("10.244.1.2", time);
    assert_eq!(changed(&moved), [(Family::V4, time.to_owned())]);
    let same = slice("10.244.1.2", "2026-11-26T10:00:02Z");
    assert!(changed(&same).is_empty(), "the endpoints are the same");
    assert!(changed(&slice("10.244.1.3", "yesterday")).is_empty());
}

#[test]
fn an_object_that_is_no_longer_valid_stays_as_it_was_with_one_warning() {
    let mut bench = Bench::listed(&[]);
    bench.reflector.apply_object(SERVICES, &service("cart", 80));
    assert_eq!(bench.deliver().1, [""; 0]);
    let broken = r#"{"metadata":{"name":"cart","namespace":"shop"},"spec":{"clusterIP":"nonsense","ports":[]}}"#;
    bench
        .reflector
        .apply_object(SERVICES, &object(SERVICES, broken));
    let (_, warnings) = bench.deliver();
    let kept = "Service shop/cart: cannot be used as it is now; its last good version stays in use";
    assert!(
        warnings.iter().any(|warning| warning.starts_with(kept)),
        "{warnings:?}"
    );
    assert_eq!(bench.index.snapshot().services().count(), 1);
    bench
        .reflector
        .apply_object(SERVICES, &object(SERVICES, broken));
    assert_eq!(bench.deliver().1, [""; 0], "the warning is not repeated");
    bench.reflector.apply_object(SERVICES, &service("cart", 80));
    bench.deliver();
    assert_eq!(bench.index.warnings().count(), 0);
}

#[test]
fn a_kind_that_goes_takes_its_objects_along() {
    let mut bench = Bench::listed(&[]);
    let policy = r#"{"metadata":{"name":"a"},"spec":{"mode":"None"}}"#;
    bench
        .reflector
        .apply_object(POLICIES, &object(POLICIES, policy));
    bench.deliver();
    assert_eq!(bench.index.snapshot().policies().count(), 1);
    bench.reflector.absent(POLICIES);
    bench.deliver();
    assert_eq!(bench.index.snapshot().policies().count(), 0);
}

#[test]
fn the_start_does_without_optional_resources_that_cannot_be_read() {
    let mut bench = Bench::new();
    bench.list(NODES, []);
    bench.list(SERVICES, []);
    bench.reflector.complete_partially();
    bench.deliver();
    assert_eq!(bench.index.completeness(), None);
    bench.list(SLICES, []);
    bench.reflector.complete_partially();
    bench.deliver();
    assert_eq!(bench.index.completeness(), Some(Completeness::Partial));
    for id in listed_always().skip(3) {
        bench.list(id, []);
    }
    bench.deliver();
    assert_eq!(bench.index.completeness(), Some(Completeness::Whole));
}

#[test]
fn an_error_of_a_resource_is_reported_once_and_withdrawn() {
    let mut bench = Bench::listed(&[]);
    let server: Arc<str> = "https://10.0.0.1:6443/".into();
    let target = kube_io::Target::of(resource(NODES).resource.path);
    let error = ApiError::new(
        kube_io::Verb::Watch,
        &target,
        kube_io::Fault::Unreachable,
        "refused",
    );
    for _ in 0..3 {
        bench.reflector.report_error(NODES, &server, Some(&error));
    }
    let (_, warnings) = bench.deliver();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("https://10.0.0.1:6443/: watch nodes: Unreachable: refused"),
        "{warnings:?}"
    );
    bench.reflector.report_error(NODES, &server, None);
    bench.deliver();
    assert_eq!(bench.index.warnings().count(), 0);
}

/// A step of a list or watch of Nodes.
#[derive(Debug, Clone)]
enum Step {
    Begin,
    Exists(u8, u8),
    Gone(u8),
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Begin),
        6 => (0..6_u8, 0..3_u8).prop_map(|(name, zone)| Step::Exists(name, zone)),
        2 => (0..6_u8).prop_map(Step::Gone),
        2 => Just(Step::End),
    ]
}

proptest! {
    /// The model: a map, and the names in the current list.
    #[test]
    fn lists_and_changes_in_any_order_end_as_a_plain_map_would(steps in prop::collection::vec(step(), 0..80)) {
        let mut bench = Bench::listed(&[]);
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        let mut named: Option<Vec<String>> = None;
        for step in steps {
            match step {
                Step::Begin => {
                    bench.reflector.begin(NODES);
                    named = Some(Vec::new());
                }
                Step::Exists(name, zone) => {
                    let (name, zone) = (format!("n{name}"), format!("z{zone}"));
                    bench.reflector.apply_object(NODES, &node(&name, &zone));
                    if let Some(named) = &mut named {
                        named.push(name.clone());
                    }
                    model.insert(name, zone);
                }
                Step::Gone(name) => {
                    let name = format!("n{name}");
                    bench.reflector.delete_object(NODES, &node(&name, "z0"));
                    model.remove(&name);
                }
                // A list ends only if it has begun.
                Step::End => if let Some(named) = named.take() {
                    bench.reflector.listed(NODES, Duration::ZERO);
                    model.retain(|name, _| named.contains(name));
                }
            }
            bench.deliver();
            prop_assert_eq!(bench.zones(), model.clone());
        }
    }
}

fn annotated(keys: &str, port: u32) -> Node {
    let annotations =
        format!(r#"{{"topology.ipvs-topo.io/mode":"hard","topology.ipvs-topo.io/keys":"{keys}"}}"#);
    let spec = format!(r#"{{"clusterIP":"10.96.0.1","ports":[{{"port":{port}}}]}}"#);
    object(
        SERVICES,
        &format!(
            r#"{{"metadata":{{"name":"cart","namespace":"shop","annotations":{annotations}}},"spec":{spec}}}"#
        ),
    )
}

#[test]
fn levels_of_a_hard_policy_that_cannot_be_read_stay_as_they_were_and_the_rest_follows() {
    let mut bench = Bench::listed(&[("n1", "a")]);
    let used = |bench: &Bench| {
        let name = ObjectName::new("shop", "cart");
        let service = bench.index.snapshot().service(&name).unwrap();
        let policy = service.policy.as_ref().unwrap();
        let levels: Vec<String> = (policy.levels.iter())
            .map(|level| level.key.to_string())
            .collect();
        (
            service.faults,
            levels.join(","),
            service.ports[0].port.get(),
        )
    };
    bench
        .reflector
        .apply_object(SERVICES, &annotated("zo ne", 80));
    assert!(bench.deliver().1[0].contains("the levels of a hard policy cannot be read"));
    assert_eq!(used(&bench), (Faults::Boundary, String::new(), 80));
    bench
        .reflector
        .apply_object(SERVICES, &annotated("example.com/rack", 80));
    bench.list(NODES, [node("n1", "a")]);
    bench.deliver();
    let good = "example.com/rack".to_owned();
    assert_eq!(used(&bench), (Faults::None, good.clone(), 80));
    bench
        .reflector
        .apply_object(SERVICES, &annotated("example.com/ rack", 81));
    bench.deliver();
    assert_eq!(used(&bench), (Faults::LastGood, good.clone(), 81));
    let keeps = |bench: &Bench| {
        let others = bench.reflector.context.others.as_ref().unwrap();
        others.keys.contains("example.com/rack")
    };
    bench.list(SERVICES, [annotated("example.com/ rack", 82)]);
    bench.list(NODES, [node("n1", "a")]);
    bench.deliver();
    assert_eq!(used(&bench), (Faults::LastGood, good, 82));
    assert!(
        keeps(&bench),
        "the labels of the last good version are kept"
    );
    bench
        .reflector
        .apply_object(SERVICES, &annotated("zone", 82));
    bench.deliver();
    assert_eq!(used(&bench), (Faults::None, "zone".to_owned(), 82));
}
