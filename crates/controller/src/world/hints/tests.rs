//! What is written on slices and what is not, beside managers that keep hints, lose them, and write their own.

use proptest::prelude::*;
use serde_json::json;
use topology_core::hints::{Slices, reconcile};

use super::super::{MANAGER, World};
use super::*;

/// 2026-11-21T20:00:00Z.
const CREATED: i64 = 1_795_291_200_000;
const NOW: i64 = CREATED + 60_000;

/// Slices as an API server keeps them, and a controller that sees each change.
struct Fake {
    world: World,
    slices: BTreeMap<String, Value>,
    version: u64,
}

impl Fake {
    /// With a Service `shop/cart`, and three zones of equal CPU.
    fn new() -> Self {
        let mut world = World::default();
        for collection in Collection::FOR_HINTS {
            world.listed(collection);
        }
        for zone in ["a", "b", "c"] {
            world.exists(Collection::Nodes, node(zone));
        }
        world.exists(Collection::Services, service(&asking("Auto")));
        Self {
            world,
            slices: BTreeMap::new(),
            version: 0,
        }
    }

    /// Writes the endpoints of a slice, as `manager`.
    fn write(&mut self, manager: &str, operation: &str, name: &str, endpoints: &[Value]) {
        self.version += 1;
        let before = self.slices.get(name);
        let generation = before.map_or(0, |one| one["metadata"]["generation"].as_u64().unwrap());
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
        self.world.exists(Collection::Slices, slice);
    }

    fn make(&mut self, name: &str, endpoints: &[Value]) {
        self.write("mesh", "Update", name, endpoints);
    }

    fn endpoints(&self, name: &str) -> Vec<Value> {
        self.slices[name]["endpoints"].as_array().unwrap().clone()
    }

    /// Does what is planned; returns what is told, and the slices that were written.
    fn settle(&mut self) -> (Vec<(&'static str, String)>, Vec<String>) {
        let mut news = self.world.look();
        let mut written = Vec::new();
        for write in of_slices(&self.world) {
            let name = write.name.1.clone();
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
            self.world.wrote(&write, self.slices[&name].clone());
            written.push(name);
        }
        assert_eq!(of_slices(&self.world), [], "nothing is written twice");
        news.extend(self.world.look());
        assert_eq!(self.world.look(), [], "nothing is told twice");
        let told = news.into_iter().map(|one| (one.key.1, one.note)).collect();
        (told, written)
    }

    /// The zone that each endpoint of all slices is hinted for.
    fn zones(&self) -> Vec<String> {
        let all = self.slices.values();
        let endpoints = all.flat_map(|one| one["endpoints"].as_array().unwrap());
        let zone = |one: &Value| value::text(one, "/hints/forZones/0/name").to_owned();
        endpoints.map(zone).collect()
    }
}

fn of_slices(world: &World) -> Vec<Write> {
    let planned = world.plan(NOW).into_iter();
    planned
        .filter(|write| write.collection == Collection::Slices)
        .collect()
}

fn bare(endpoints: &[Value]) -> Vec<Value> {
    let mut bare = endpoints.to_vec();
    for one in &mut bare {
        one.as_object_mut().unwrap().remove("hints");
    }
    bare
}

fn node(zone: &str) -> Value {
    json!({
        "metadata": { "name": zone, "labels": { "topology.kubernetes.io/zone": zone } },
        "status": {
            "allocatable": { "cpu": "4" },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

fn asking(mode: &str) -> Value {
    json!({ "service.kubernetes.io/topology-mode": mode })
}

fn service(annotations: &Value) -> Value {
    json!({
        "metadata": {
            "name": "cart", "namespace": "shop", "annotations": annotations,
            "creationTimestamp": "2026-11-21T20:00:00Z",
        },
        "spec": { "type": "ClusterIP", "clusterIP": "10.96.0.10" },
    })
}

fn endpoint(number: usize, zone: &str) -> Value {
    json!({
        "addresses": [format!("10.1.0.{number}")], "conditions": { "ready": true },
        "hostname": format!("h{number}"), "nodeName": zone, "zone": zone,
    })
}

/// One in each of these zones.
fn endpoints(zones: &str) -> Vec<Value> {
    let zones = zones.split_whitespace().enumerate();
    zones.map(|(number, zone)| endpoint(number, zone)).collect()
}

fn hinted(mut endpoints: Vec<Value>, zone: &str) -> Vec<Value> {
    for one in &mut endpoints {
        one["hints"] = json!({ "forZones": [{ "name": zone }] });
    }
    endpoints
}

const ENABLED: &str = "TopologyAwareHintsEnabled";
const DISABLED: &str = "TopologyAwareHintsDisabled";

fn words(told: &[(&'static str, String)]) -> Vec<&'static str> {
    told.iter().map(|(word, _)| *word).collect()
}

/// With hints of ours on two slices.
fn settled() -> Fake {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a a b c"));
    fake.make("cart-2", &[endpoint(9, "b"), endpoint(10, "c")]);
    let (told, written) = fake.settle();
    assert_eq!(
        (words(&told), &written[..]),
        (
            vec![ENABLED],
            &["cart-1".to_owned(), "cart-2".to_owned()][..]
        )
    );
    fake
}

#[test]
fn hints_are_dealt_out_and_follow_what_the_manager_does() {
    let mut fake = settled();
    assert_eq!(fake.zones(), ["a", "a", "b", "c", "b", "c"]);
    assert_eq!(fake.world.hinted().written, 1);
    // It writes other endpoints, and has never heard of hints.
    fake.make("cart-1", &endpoints("a b b c"));
    assert_eq!(fake.settle(), (vec![], vec!["cart-1".to_owned()]));
    // It keeps the hints that it finds, and adds an endpoint without.
    let mut more = fake.endpoints("cart-1");
    more.push(endpoint(7, "a"));
    fake.make("cart-1", &more);
    fake.settle();
    assert!(
        fake.zones().iter().all(|zone| !zone.is_empty()),
        "{:?}",
        fake.zones()
    );
}

#[test]
fn what_cannot_be_is_taken_away_and_told_until_it_can() {
    let mut fake = settled();
    fake.make("cart-1", &endpoints("a"));
    fake.make("cart-2", &[]);
    let (told, _) = fake.settle();
    assert_eq!(words(&told), [DISABLED]);
    assert_eq!(
        told[0].1,
        "no topology aware hints: 1 ready endpoints are too few for 3 zones, addressType IPv4"
    );
    fake.make("cart-2", &[endpoint(9, "b")]);
    assert_eq!(fake.settle(), (vec![], vec![]), "still too few");
    fake.make("cart-2", &[endpoint(9, "b"), endpoint(10, "c")]);
    assert_eq!(words(&fake.settle().0), [ENABLED]);
    for zone in ["b", "c"] {
        fake.world
            .gone(Collection::Nodes, &(String::new(), zone.to_owned()));
    }
    let (told, written) = fake.settle();
    assert!(
        told[0].1.contains("the Nodes do not say enough"),
        "{told:?}"
    );
    assert_eq!(written.len(), 2);
    assert_eq!(fake.zones().concat(), "");
    assert_eq!(fake.world.hinted().refused, 1);
}

#[test]
fn ours_are_taken_away_when_nobody_asks_any_more_also_by_another_leader() {
    for forgets in [false, true] {
        for change in ["annotation", "selector", "deleted"] {
            let mut fake = settled();
            if forgets {
                fake.world.forget();
            }
            let mut object = service(&json!({}));
            if change == "selector" {
                object = service(&asking("Auto"));
                object["spec"]["selector"] = json!({ "app": "cart" });
            }
            if change == "deleted" {
                let name = ("shop".to_owned(), "cart".to_owned());
                fake.world.gone(Collection::Services, &name);
            } else {
                fake.world.exists(Collection::Services, object);
            }
            let (told, written) = fake.settle();
            let expected: &[&str] = if change == "deleted" {
                &[]
            } else {
                &[DISABLED]
            };
            assert_eq!(words(&told), expected, "{change}");
            assert_eq!((written.len(), fake.zones().concat()), (2, String::new()));
        }
    }
}

#[test]
fn another_writer_of_hints_is_left_alone_and_ours_are_taken_back() {
    let mut fake = settled();
    let theirs = hinted(fake.endpoints("cart-1"), "z");
    fake.write("other", "Update", "cart-1", &theirs);
    let (told, written) = fake.settle();
    assert_eq!(words(&told), [HINTS_LEFT]);
    assert_eq!(
        told[0].1,
        "no hints are written: other changed the hints on EndpointSlice cart-1"
    );
    assert_eq!(written, ["cart-2"]);
    assert_eq!(fake.world.hinted().left, 1);
    // From then on, whatever becomes of the slice.
    fake.make("cart-1", &endpoints("a a b c"));
    assert_eq!(fake.settle(), (vec![], vec![]));
    // Who asks anew is heard again.
    fake.world.exists(Collection::Services, service(&json!({})));
    assert_eq!(fake.settle(), (vec![], vec![]));
    fake.world
        .exists(Collection::Services, service(&asking("auto")));
    assert_eq!(words(&fake.settle().0), [ENABLED]);
}

#[test]
fn a_manager_that_takes_hints_off_the_same_endpoints_wins_at_once() {
    let mut fake = settled();
    let mut bare = bare(&fake.endpoints("cart-1"));
    bare.reverse();
    fake.make("cart-1", &bare);
    let (told, written) = fake.settle();
    assert_eq!(
        (words(&told), written),
        (vec![HINTS_LEFT], vec!["cart-2".to_owned()])
    );
}

#[test]
fn hints_of_others_slices_that_were_applied_and_mirrored_ones_are_never_written() {
    for how in ["hinted", "applied", "mirrored"] {
        let mut fake = Fake::new();
        fake.make("cart-2", &endpoints("a b c"));
        let first = endpoints("a b c");
        match how {
            "hinted" => fake.make("cart-1", &hinted(first, "a")),
            "applied" => fake.write("argocd", "Apply", "cart-1", &first),
            _ => {
                fake.make("cart-1", &first);
                let mut slice = fake.slices["cart-1"].clone();
                slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] =
                    "endpointslicemirroring-controller.k8s.io".into();
                fake.world.exists(Collection::Slices, slice);
            }
        }
        let (told, written) = fake.settle();
        assert_eq!(
            (words(&told), written.len()),
            (vec![HINTS_LEFT], 0),
            "{how}"
        );
    }
}

#[test]
fn only_services_without_a_selector_that_node_proxies_serve_are_concerned() {
    for (field, other) in [
        ("selector", json!({ "app": "cart" })),
        ("clusterIP", json!("None")),
        ("clusterIP", json!("")),
        ("type", json!("ExternalName")),
    ] {
        let mut fake = Fake::new();
        let mut object = service(&asking("Auto"));
        object["spec"][field] = other;
        fake.world.exists(Collection::Services, object);
        fake.make("cart-1", &endpoints("a b c"));
        assert_eq!(fake.settle(), (vec![], vec![]), "{field}");
    }
}

#[test]
fn nothing_is_written_before_everything_was_read() {
    let mut fake = settled();
    fake.world.hints.listed.remove(&Collection::Services);
    fake.world.gone(
        Collection::Services,
        &("shop".to_owned(), "cart".to_owned()),
    );
    assert_eq!(fake.settle(), (vec![], vec![]));
}

#[test]
fn what_the_api_server_drops_is_not_asked_for_again() {
    let mut fake = Fake::new();
    let mut object = service(&json!({}));
    object["spec"]["trafficDistribution"] = json!("PreferSameNode");
    fake.world.exists(Collection::Services, object);
    fake.make("cart-1", &endpoints("a b"));
    fake.world.look();
    let [write] = &of_slices(&fake.world)[..] else {
        panic!("one write");
    };
    let hints = &write.body["endpoints"][0]["hints"];
    assert_eq!(
        *hints,
        json!({ "forZones": [{ "name": "a" }], "forNodes": [{ "name": "a" }] })
    );
    let unchanged = fake.slices["cart-1"].clone();
    fake.world.wrote(write, unchanged);
    assert_eq!(of_slices(&fake.world), []);
    fake.make("cart-1", &endpoints("a b c"));
    assert_eq!(of_slices(&fake.world).len(), 1);
}

#[test]
fn both_families_are_told_in_one_event() {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a b c"));
    fake.make("cart-6", &endpoints("a b c"));
    let both = ["IPv4", "IPv6"]
        .map(|family| format!("endpoints have topology aware hints, addressType {family}"));
    assert_eq!(fake.settle().0, [(ENABLED, both.join("; "))]);
}

#[test]
fn what_a_leader_finds_at_first_is_told_as_of_the_same_time_and_success_when_it_is_there() {
    let mut fake = Fake::new();
    fake.make("cart-1", &endpoints("a"));
    for _leader in 0..2 {
        let since: Vec<_> = fake.world.look().iter().map(|one| one.since).collect();
        assert_eq!(since, [Some(CREATED)]);
        fake.world.forget();
    }
    fake.make("cart-1", &endpoints("a b c"));
    assert_eq!(fake.world.look(), [], "nothing is written yet");
    assert_eq!(fake.world.hinted(), Count::default());
    assert_eq!(words(&fake.settle().0), [ENABLED]);
}

/// What happens to one of three slices, or to the Service.
#[derive(Debug, Clone)]
enum Happens {
    /// The manager writes so many endpoints in each zone; it keeps hints it knows, or none.
    Made(usize, [usize; 3], bool),
    /// Somebody writes hints.
    Hinted(usize),
    /// The Service asks, or does not.
    Asks(bool),
    /// Another replica leads.
    Forgot,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (0_usize..3, [0_usize..4, 0..4, 0..4], any::<bool>())
            .prop_map(|(slice, counts, keeps)| Happens::Made(slice, counts, keeps)),
        1 => (0_usize..3).prop_map(Happens::Hinted),
        2 => any::<bool>().prop_map(Happens::Asks),
        1 => Just(Happens::Forgot),
    ]
}

impl Fake {
    fn happens(&mut self, what: &Happens) {
        let name = |number: &usize| format!("cart-{number}");
        match what {
            Happens::Made(slice, counts, keeps) => {
                let zones = ["a", "b", "c"].into_iter().zip(counts);
                let zones = zones.flat_map(|(zone, count)| (0..*count).map(move |at| (zone, at)));
                let mut made: Vec<Value> = zones
                    .map(|(zone, at)| {
                        let third = usize::from(zone.as_bytes()[0] - b'a');
                        endpoint(slice * 50 + third * 10 + at, zone)
                    })
                    .collect();
                let old = self.slices.get(&name(slice)).filter(|_| *keeps);
                for one in old
                    .into_iter()
                    .flat_map(|one| one["endpoints"].as_array().unwrap())
                {
                    let same = made
                        .iter_mut()
                        .find(|new| new["addresses"] == one["addresses"]);
                    if let (Some(new), Some(hints)) = (same, one.get("hints")) {
                        new["hints"] = hints.clone();
                    }
                }
                self.make(&name(slice), &made);
            }
            Happens::Hinted(slice) if self.slices.contains_key(&name(slice)) => {
                let theirs = hinted(self.endpoints(&name(slice)), "z");
                self.write("other", "Update", &name(slice), &theirs);
            }
            Happens::Hinted(_) => {}
            Happens::Asks(asks) => {
                let mode = asking(if *asks { "Auto" } else { "Disabled" });
                self.world.exists(Collection::Services, service(&mode));
            }
            Happens::Forgot => self.world.forget(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The first hints are those that the allocator gives to endpoints without any.
    #[test]
    fn hints_are_those_of_the_allocator(counts in prop::collection::vec([0_usize..5, 0..5, 0..5], 1..4)) {
        let mut fake = Fake::new();
        for (slice, counts) in counts.iter().enumerate() {
            fake.happens(&Happens::Made(slice, *counts, false));
        }
        let fresh = fake.slices.iter().map(|(name, one)| Slice::read(one).unwrap().to_hint(name));
        let mut fresh = Slices { create: fresh.collect(), ..Slices::default() };
        let event = reconcile(Wanted::Auto, fake.world.zones().as_ref(), Family::V4, false, &mut fresh);
        let (told, _) = fake.settle();
        prop_assert_eq!(words(&told), [event.unwrap().reason()]);
        let members = fresh.create.iter().flat_map(|one| &one.members);
        let zone = |hints: &topology_core::model::Hints| hints.zones[0].to_string();
        let expected: Vec<String> = members.map(|one| one.hints.as_ref().map_or_else(String::new, zone)).collect();
        prop_assert_eq!(fake.zones(), expected);
    }

    /// Whatever happens: a slice with hints of another is not touched while the Service asks; and when nobody asks,
    /// none of ours are left on slices that we wrote last.
    #[test]
    fn nobody_is_fought_and_nothing_is_left_behind(all in prop::collection::vec(happens(), 1..25)) {
        let (mut fake, mut asks) = (Fake::new(), true);
        for what in &all {
            fake.happens(what);
            if let Happens::Asks(now) = what {
                asks = *now;
            }
            let before = fake.slices.clone();
            let (_, written) = fake.settle();
            for name in &written {
                let zones = before[name]["endpoints"].as_array().unwrap().iter();
                let theirs = zones.filter(|one| value::text(one, "/hints/forZones/0/name") == "z");
                prop_assert_eq!(theirs.count(), 0, "{} in {:?}", name, what);
            }
            for slice in fake.slices.values() {
                let read = Slice::read(slice).unwrap();
                let ours = read.author == slice::Author::Us && read.is_hinted();
                prop_assert!(asks || !ours, "{:?}", what);
            }
        }
    }
}
