//! Clusters at random: one event after the other equals a fresh start, and what holds for every decision.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use topology_core::model::{
    Cidr, EndpointSlice, Family, Node, ObjectName, Protocol, Service, TrafficPolicy,
};
use topology_core::policy::{EmptyTier, LevelKey, Mode, Policy};
use topology_core::quantise::{Stage, tolerance};
use topology_core::ratio::Ratio;
use topology_core::resolve::{Decision, Refusal, Resolution, ResolvedServer, Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

use crate::world::{self, Ep, REGION, ZONE, at, weighted};

/// The node that looks.
const ME: &str = "n0";

#[derive(Debug, Clone)]
enum Event {
    SetNode(Node),
    RemoveNode(&'static str),
    SetService(Service),
    RemoveService(ObjectName),
    SetSlice(EndpointSlice),
    RemoveSlice(ObjectName),
    SetCidrs(Vec<Cidr>),
}

impl Event {
    fn feed(self, snapshot: &mut Snapshot) {
        match self {
            Self::SetNode(node) => snapshot.set_node(node),
            Self::RemoveNode(name) => snapshot.remove_node(name),
            Self::SetService(service) => snapshot.set_service(service),
            Self::RemoveService(name) => snapshot.remove_service(&name),
            Self::SetSlice(slice) => snapshot.set_slice(slice),
            Self::RemoveSlice(name) => snapshot.remove_slice(&name),
            Self::SetCidrs(cidrs) => snapshot.set_service_cidrs(cidrs),
        }
    }

    /// What it is about; of two events about the same only the later one counts.
    fn about(&self) -> String {
        match self {
            Self::SetNode(node) => format!("node {}", node.name),
            Self::RemoveNode(name) => format!("node {name}"),
            Self::SetService(service) => format!("service {}", service.name),
            Self::RemoveService(name) => format!("service {name}"),
            Self::SetSlice(slice) => format!("slice {}", slice.name),
            Self::RemoveSlice(name) => format!("slice {name}"),
            Self::SetCidrs(_) => "cidrs".to_owned(),
        }
    }
}

fn one_of<T: Clone + std::fmt::Debug + 'static>(values: &[T]) -> impl Strategy<Value = T> + use<T> {
    proptest::sample::select(values.to_vec())
}

fn node_names() -> impl Strategy<Value = &'static str> {
    one_of(&[ME, "n1", "n2", "n3"])
}

fn nodes() -> impl Strategy<Value = Node> {
    let label = |key: &'static str, values: &[&'static str]| {
        proptest::option::of(one_of(values).prop_map(move |value| (key, value)))
    };
    let labels = (
        label(ZONE, &["a", "b", ""]),
        label(REGION, &["r"]),
        label("rack", &["1", "2"]),
        label("topology.ipvs-topo.io/capacity", &["1", "2", "3", "none"]),
    );
    // A node's address may be a virtual one by mistake.
    let addresses = proptest::option::weighted(0.1, one_of(&["10.96.0.1", "10.96.0.2"]));
    (node_names(), labels, addresses).prop_map(|(name, (zone, region, rack, capacity), address)| {
        let labels: Vec<_> = [zone, region, rack, capacity]
            .into_iter()
            .flatten()
            .collect();
        let mut node = world::node(name, &labels);
        node.addresses
            .extend(address.map(|address| address.parse::<std::net::IpAddr>().unwrap()));
        node
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    let keys = ["node", ZONE, REGION, "rack"];
    let levels = proptest::sample::subsequence(keys.to_vec(), 0..=4).prop_shuffle();
    let weights = proptest::collection::vec(prop_oneof![Just(0), 1..100_u32, Just(10_000)], 5);
    let options = (any::<bool>(), any::<bool>(), any::<bool>());
    (levels, weights, options).prop_map(|(mut keys, weights, (open, none, renormalize))| {
        if open || keys.is_empty() {
            keys.push("*");
        }
        let levels: Vec<_> = keys.into_iter().zip(weights).collect();
        let mut policy = weighted(&levels);
        if renormalize {
            policy.empty_tier = EmptyTier::Renormalize;
        }
        if none && levels.len() == 1 {
            (policy.mode, policy.levels) = (Mode::None, Vec::new());
        }
        policy
    })
}

fn services() -> impl Strategy<Value = Service> {
    let place = (
        one_of(&["s0", "s1", "s2"]),
        one_of(&["10.96.0.1", "10.96.0.2"]),
        any::<bool>(),
    );
    let ports = proptest::sample::subsequence(vec![80_u16, 81], 1..=2);
    let rest = (
        proptest::option::of(policies()),
        any::<bool>(),
        proptest::option::of(0..3_i64),
    );
    (place, ports, rest).prop_map(|((name, address, dual), ports, (policy, local, created))| {
        let mut service = world::service(name, address);
        if dual {
            service.cluster_ips.push("fd00::1".parse().unwrap());
        }
        let port = |port: u16| world::service_port(&format!("p{port}"), Protocol::Tcp, port);
        service.ports = ports.into_iter().map(port).collect();
        (service.policy, service.created) = (policy.map(Box::new), created);
        if local && service.policy.is_none() {
            service.internal_traffic_policy = TrafficPolicy::Local;
        }
        service
    })
}

fn endpoints() -> impl Strategy<Value = Ep> {
    let place = (
        0..8_u8,
        proptest::option::of(node_names()),
        proptest::option::of(one_of(&["a", "b"])),
    );
    let conditions = (any::<bool>(), any::<bool>(), any::<bool>());
    let hints = (
        proptest::option::of(one_of(&["a", "b"])),
        proptest::option::of(node_names()),
    );
    (place, conditions, hints).prop_map(
        |((number, node, zone), (ready, serving, terminating), hints)| {
            let mut endpoint = at(if number == 7 {
                [127, 0, 0, 1]
            } else {
                [10, 244, 0, number]
            }
            .into());
            endpoint.0.node = node.map(Into::into);
            endpoint.0.zone = zone.map(Into::into);
            (endpoint.0.ready, endpoint.0.serving) = (ready, serving);
            endpoint.0.terminating = terminating && !ready;
            if let Some(zone) = hints.0 {
                endpoint = endpoint.for_zones(&[zone]);
            }
            if let Some(node) = hints.1 {
                endpoint = endpoint.for_nodes(&[node]);
            }
            endpoint
        },
    )
}

fn slices() -> impl Strategy<Value = EndpointSlice> {
    let names = (
        one_of(&["x0", "x1", "x2", "x3"]),
        one_of(&["s0", "s1", "s2", "nobody"]),
    );
    let endpoints = proptest::collection::vec(endpoints(), 0..6);
    let ports = proptest::sample::subsequence(vec![80_u16, 81], 0..=2);
    (names, endpoints, ports).prop_map(|((name, service), endpoints, ports)| {
        let mut slice = world::slice(name, service, endpoints);
        let port = |port: u16| world::slice_port(&format!("p{port}"), Protocol::Tcp, port + 8000);
        slice.ports = ports.into_iter().map(port).collect();
        slice.family = Family::V4;
        slice
    })
}

fn events() -> impl Strategy<Value = Event> {
    let names = |names: &[&'static str]| one_of(names).prop_map(|name| ObjectName::new("t", name));
    prop_oneof![
        4 => nodes().prop_map(Event::SetNode),
        1 => node_names().prop_map(Event::RemoveNode),
        4 => services().prop_map(Event::SetService),
        1 => names(&["s0", "s1", "s2"]).prop_map(Event::RemoveService),
        6 => slices().prop_map(Event::SetSlice),
        1 => names(&["x0", "x1", "x2", "x3"]).prop_map(Event::RemoveSlice),
        1 => one_of(&["10.96.0.0/16", "10.0.0.0/8"]).prop_map(|cidr| Event::SetCidrs(vec![cidr.parse().unwrap()])),
    ]
}

/// Everything that is decided.
fn resolve_all(snapshot: &Snapshot) -> BTreeMap<ObjectName, Resolution> {
    let me = Viewpoint::new(ME);
    let names = snapshot.services().map(|service| service.name.clone());
    names
        .map(|name| (name.clone(), resolve(snapshot, &me, &name)))
        .collect()
}

/// What the kernel would hold, without the words for people.
fn programmed(resolutions: &BTreeMap<ObjectName, Resolution>) -> Vec<String> {
    let servers = resolutions
        .values()
        .flat_map(|resolution| &resolution.servers);
    servers
        .map(|server| format!("{:?}", server.server))
        .collect()
}

proptest! {
    #[test]
    fn one_event_after_the_other_equals_a_fresh_start(
        batches in proptest::collection::vec(proptest::collection::vec(events(), 1..4), 1..8)
    ) {
        let me = Viewpoint::new(ME);
        let (mut snapshot, mut known) = (Snapshot::default(), BTreeMap::new());
        let mut last: BTreeMap<String, Event> = BTreeMap::new();
        for event in batches.into_iter().flat_map(|batch| batch.into_iter().map(Some).chain([None])) {
            if let Some(event) = event {
                last.insert(event.about(), event.clone());
                event.feed(&mut snapshot);
                continue;
            }
            for name in snapshot.take_dirty(ME).services {
                match snapshot.service(&name) {
                    Some(_) => drop(known.insert(name.clone(), resolve(&snapshot, &me, &name))),
                    None => drop(known.remove(&name)),
                }
            }
            prop_assert_eq!(programmed(&known), programmed(&resolve_all(&snapshot)), "nothing was missed");
        }
        let mut fresh = Snapshot::default();
        // In the order of the alphabet, which is not that of the events.
        for event in last.into_values() {
            event.feed(&mut fresh);
        }
        prop_assert_eq!(resolve_all(&snapshot), resolve_all(&fresh), "the past leaves no trace");
        prop_assert_eq!(snapshot.service_cidrs(), fresh.service_cidrs());
    }

    #[test]
    fn the_same_again_makes_nothing_dirty(events in proptest::collection::vec(events(), 1..20)) {
        let mut snapshot = Snapshot::default();
        events.iter().cloned().for_each(|event| event.feed(&mut snapshot));
        snapshot.take_dirty(ME);
        let last: BTreeMap<String, Event> = events.into_iter().map(|event| (event.about(), event)).collect();
        for event in last.into_values() {
            event.feed(&mut snapshot);
        }
        prop_assert!(snapshot.take_dirty(ME).is_empty());
    }

    #[test]
    fn i1_to_i7_hold_for_every_decision(events in proptest::collection::vec(events(), 1..25)) {
        let mut snapshot = Snapshot::default();
        for event in events {
            event.feed(&mut snapshot);
        }
        let resolutions = resolve_all(&snapshot);
        prop_assert_eq!(&resolutions, &resolve_all(&snapshot), "I7");
        let mut keys = BTreeSet::new();
        for (name, resolution) in &resolutions {
            let service = snapshot.service(name).unwrap();
            for server in &resolution.servers {
                prop_assert!(keys.insert(server.server.key), "no two Services share a virtual server");
                holds(&snapshot, service, server)?;
            }
        }
    }

    #[test]
    fn i8_one_more_ready_endpoint_never_lowers_the_share_of_its_level(
        policy in policies(),
        counts in proptest::collection::vec(0..4_u8, 4),
        tier in 0..4_usize,
    ) {
        let before = level_shares(&policy, &counts);
        let mut more = counts.clone();
        more[tier] += 1;
        let after = level_shares(&policy, &more);
        let node = level_of(&policy, tier);
        if let Some(level) = node {
            let share = |shares: &[Ratio]| shares.get(level).copied().unwrap_or(Ratio::ZERO);
            prop_assert!(share(&after) >= share(&before));
        }
    }

    #[test]
    fn i9_scaling_all_weights_changes_nothing(mut policy in policies(), counts in proptest::collection::vec(0..4_u8, 4)) {
        policy.levels.iter_mut().for_each(|level| level.weight %= 100);
        let before = level_shares(&policy, &counts);
        policy.levels.iter_mut().for_each(|level| level.weight *= 7);
        prop_assert_eq!(before, level_shares(&policy, &counts));
    }
}

/// One kind of node for each of the four keys that policies use, and endpoints on them.
fn level_shares(policy: &Policy, counts: &[u8]) -> Vec<Ratio> {
    let labels = [(ZONE, "a"), (REGION, "r"), ("rack", "1")];
    let mut world = world::World::new(ME)
        .node(ME, &labels)
        .policy(policy.clone());
    let mut endpoints = Vec::new();
    for (tier, count) in counts.iter().enumerate() {
        let name = if tier == 0 {
            ME.to_owned()
        } else {
            format!("t{tier}")
        };
        if tier > 0 {
            world = world.node(&name, &labels[tier - 1..tier]);
        }
        for number in 0..*count {
            endpoints.push(at([10, 244, u8::try_from(tier).unwrap(), number].into()).on(&name));
        }
    }
    let decision = world.endpoints(endpoints).server().decision;
    decision.levels.iter().map(|level| level.share).collect()
}

/// The level of endpoints of such a kind; those on this node are in the first level whatever its key.
fn level_of(policy: &Policy, tier: usize) -> Option<usize> {
    let keys = [
        LevelKey::Node,
        LevelKey::Label(ZONE.into()),
        LevelKey::Label(REGION.into()),
        LevelKey::Label("rack".into()),
    ];
    policy
        .levels
        .iter()
        .position(|level| tier == 0 || level.key == LevelKey::Any || level.key == keys[tier])
}

fn holds(
    snapshot: &Snapshot,
    service: &Service,
    resolved: &ResolvedServer,
) -> Result<(), TestCaseError> {
    let ResolvedServer {
        server, decision, ..
    } = resolved;
    let weights: Vec<u32> = server.real_servers.iter().map(|real| real.weight).collect();
    let gcd = |a: u32, b: u32| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    prop_assert!(
        weights.iter().all(|weight| (1..=65_535).contains(weight)),
        "I4"
    );
    prop_assert!(
        weights.is_empty() || weights.iter().copied().fold(0, gcd) == 1,
        "I4"
    );
    if service.policy.is_none() {
        prop_assert!(weights.iter().all(|weight| *weight == 1), "I1");
    }
    let chosen = decision
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.is_chosen());
    prop_assert_eq!(
        chosen.count(),
        weights.len(),
        "what is said is what is done"
    );
    alike(snapshot, decision)?;
    near(decision)?;
    never_black_hole(service, decision)
}

/// I2: endpoints of one level and capacity weigh the same.
fn alike(snapshot: &Snapshot, decision: &Decision) -> Result<(), TestCaseError> {
    let mut weights: BTreeMap<(LevelKey, u16), u32> = BTreeMap::new();
    for endpoint in decision
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.is_chosen())
    {
        let node = endpoint.node.as_ref().and_then(|name| snapshot.node(name));
        let capacity = node.map_or(1, Node::capacity);
        let class = (endpoint.level.clone().unwrap(), capacity);
        let weight = *weights.entry(class).or_insert(endpoint.weight);
        prop_assert_eq!(weight, endpoint.weight, "I2");
    }
    Ok(())
}

/// I3, and shares that sum up.
fn near(decision: &Decision) -> Result<(), TestCaseError> {
    let Some((stage, _)) = decision.quantised else {
        return Ok(());
    };
    let sum =
        |shares: &dyn Fn(usize) -> Ratio| (0..decision.levels.len()).map(shares).sum::<Ratio>();
    prop_assert_eq!(sum(&|at| decision.levels[at].share), Ratio::ONE);
    prop_assert_eq!(sum(&|at| decision.levels[at].achieved), Ratio::ONE);
    prop_assert_eq!(
        decision
            .endpoints
            .iter()
            .map(|endpoint| endpoint.share)
            .sum::<Ratio>(),
        Ratio::ONE
    );
    for level in &decision.levels {
        let is_near = level.achieved.distance(level.share) <= tolerance(level.share);
        prop_assert!(is_near || stage == Stage::Clamped, "I3");
    }
    Ok(())
}

/// I5: a hard policy stays inside; I6: a soft one always finds somebody.
fn never_black_hole(service: &Service, decision: &Decision) -> Result<(), TestCaseError> {
    let hard = service.policy.as_deref().is_some_and(Policy::is_bounded);
    let local = service.internal_traffic_policy == TrafficPolicy::Local;
    let usable = decision
        .endpoints
        .iter()
        .any(|endpoint| endpoint.reason.is_chosen());
    match decision.refusal {
        Some(Refusal::Avoided | Refusal::Drained) => prop_assert!(false, "nobody asked for it"),
        Some(Refusal::NoMatch | Refusal::OwnNodeUnknown) => prop_assert!(hard, "I6"),
        Some(Refusal::NoneLocal) => prop_assert!(local, "I6"),
        Some(Refusal::NoEndpoints | Refusal::NoneReady) => prop_assert!(!usable),
        None => prop_assert!(usable),
    }
    if hard {
        let levels: BTreeSet<LevelKey> = decision
            .levels
            .iter()
            .map(|level| level.key.clone())
            .collect();
        prop_assert!(!levels.contains(&LevelKey::Any), "I5");
    }
    Ok(())
}
