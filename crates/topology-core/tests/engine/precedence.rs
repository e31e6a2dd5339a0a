//! Which source decides.

use topology_core::hints::HintMode;
use topology_core::model::{
    Enforcement, Expression, Faults, Labels, Operator, OwnerLimits, PolicyName, Selector, Service,
    TopologyPolicy, TrafficPolicy,
};
use topology_core::policy::{Avoid, LevelKey, Mode, Policy, PolicySource};
use topology_core::resolve::{Decision, LostBecause, Note, Refusal};
use topology_core::scheduler::Scheduler;

use crate::world::{RACK, REGION, World, ZONE, cluster_policy, ep, node, weighted};

/// A `ClusterTopologyPolicy` for everything.
fn object(name: &str) -> TopologyPolicy {
    TopologyPolicy {
        created: Some(100),
        ..cluster_policy(name, weighted(&[(ZONE, 100), ("*", 0)]))
    }
}

fn in_namespace(name: &str) -> TopologyPolicy {
    TopologyPolicy {
        namespace: Some("t".into()),
        ..object(name)
    }
}

fn select(key: &str, value: &str) -> Selector {
    Selector {
        labels: vec![(key.into(), value.into())],
        expressions: Vec::new(),
    }
}

fn world() -> World {
    World::new("me")
        .node("me", &[(ZONE, "a"), ("pool", "edge")])
        .endpoints([ep(1).zone("a"), ep(2).zone("b")])
}

fn with(objects: impl IntoIterator<Item = TopologyPolicy>) -> World {
    let mut world = world();
    for object in objects {
        world.snapshot.set_policy(object);
    }
    world
}

fn decision(mut world: World) -> Decision {
    world.server().decision
}

/// Kind and name.
fn shown(policy: &PolicyName) -> &'static str {
    Box::leak(policy.to_string().into_boxed_str())
}

fn winner(decision: &Decision) -> (PolicySource, Option<&'static str>) {
    (decision.source, decision.policy.as_ref().map(shown))
}

fn lost(decision: &Decision) -> Vec<(&str, LostBecause)> {
    let lost = decision.lost.iter();
    lost.map(|lost| {
        (
            lost.policy.as_ref().map_or(lost.source.as_str(), shown),
            lost.why,
        )
    })
    .collect()
}

fn overriding(name: &str) -> TopologyPolicy {
    TopologyPolicy {
        enforcement: Enforcement::Override,
        ..object(name)
    }
}

#[test]
fn the_first_source_that_applies_decides_and_the_others_are_listed() {
    let all = || with([overriding("must"), object("may"), in_namespace("near")]);
    let mut own = all();
    own.service.policy = Some(weighted(&[("*", 1)]).into());
    let found = decision(own);
    assert_eq!(
        winner(&found),
        (
            PolicySource::ClusterOverride,
            Some("ClusterTopologyPolicy must")
        )
    );
    assert_eq!(
        lost(&found),
        [
            ("annotation", LostBecause::Weaker),
            ("TopologyPolicy t/near", LostBecause::Weaker),
            ("ClusterTopologyPolicy may", LostBecause::Weaker),
        ]
    );
    let mut without = all();
    without.snapshot.remove_policy(None, "must");
    assert_eq!(winner(&decision(without)).0, PolicySource::NamespacePolicy);
    let mut without = all();
    without.snapshot.remove_policy(None, "must");
    without.snapshot.remove_policy(Some("t"), "near");
    assert_eq!(
        winner(&decision(without)),
        (
            PolicySource::ClusterDefault,
            Some("ClusterTopologyPolicy may")
        )
    );
}

#[test]
fn traffic_policy_local_is_above_all() {
    let mut world = with([overriding("must")]);
    world.service.internal_traffic_policy = TrafficPolicy::Local;
    let found = decision(world);
    assert_eq!(
        winner(&found),
        (PolicySource::InternalTrafficPolicyLocal, None)
    );
    assert_eq!(
        lost(&found),
        [("ClusterTopologyPolicy must", LostBecause::Weaker)]
    );
}

#[test]
fn hints_that_do_not_decide_have_a_reason() {
    let why = |world: World| {
        let found = decision(world);
        let why = lost(&found)
            .into_iter()
            .find(|(source, _)| *source == "hints");
        (found.source, why.map(|(_, why)| why))
    };
    let hinted = |first: &str, second: &[&str]| {
        World::new("me")
            .node("me", &[(ZONE, "a")])
            .endpoints([ep(1).for_zones(&[first]), ep(2).for_zones(second)])
    };
    assert_eq!(why(hinted("a", &["b"])), (PolicySource::Hints, None));
    let uniform = |why| (PolicySource::Uniform, Some(why));
    assert_eq!(why(hinted("a", &[])), uniform(LostBecause::PartlyHinted));
    assert_eq!(
        why(hinted("b", &["c"])),
        uniform(LostBecause::HintedElsewhere)
    );
    let nowhere = World::new("me")
        .node("me", &[])
        .endpoints([ep(1).for_zones(&["a"])]);
    assert_eq!(why(nowhere), uniform(LostBecause::NodeWithoutZone));
    let other_node = World::new("me")
        .node("me", &[(ZONE, "a")])
        .endpoints([ep(1).for_nodes(&["other"])]);
    assert_eq!(why(other_node), uniform(LostBecause::HintedElsewhere));
    let mut own = hinted("a", &["b"]);
    own.service.policy = Some(weighted(&[("*", 1)]).into());
    assert_eq!(
        why(own),
        (PolicySource::Annotation, Some(LostBecause::Weaker))
    );
    assert_eq!(why(world()), (PolicySource::Uniform, None));
}

#[test]
fn annotations_are_above_every_policy_that_does_not_override() {
    let mut world = with([object("may"), in_namespace("near")]);
    world.service.policy = Some(weighted(&[("*", 1)]).into());
    assert_eq!(winner(&decision(world)), (PolicySource::Annotation, None));
}

#[test]
fn of_equals_priority_then_age_then_name_decides() {
    let ranked = |name: &str, priority, created| TopologyPolicy {
        priority,
        created,
        ..object(name)
    };
    let found = decision(with([
        ranked("a", 1, Some(5)),
        ranked("b", 2, Some(9)),
        ranked("c", 2, Some(8)),
        ranked("d", 2, Some(8)),
        ranked("e", 2, None),
    ]));
    assert_eq!(winner(&found).1, Some("ClusterTopologyPolicy c"));
    assert_eq!(
        lost(&found),
        [
            ("ClusterTopologyPolicy d", LostBecause::LaterName),
            ("ClusterTopologyPolicy b", LostBecause::Younger),
            ("ClusterTopologyPolicy e", LostBecause::Younger),
            ("ClusterTopologyPolicy a", LostBecause::LowerPriority),
        ]
    );
}

#[test]
fn selectors_of_services_namespaces_ports_and_nodes_hold() {
    let labelled = |pairs: &[(&str, &str)]| -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    };
    let decided = |object: TopologyPolicy| {
        let mut world = with([object]);
        world.service.labels = labelled(&[("app", "cart")]);
        world
            .snapshot
            .set_namespace("t", labelled(&[("tier", "backend")]));
        let found = decision(world);
        (
            found.policy.is_some(),
            found.lost.first().map(|lost| lost.why),
        )
    };
    let by = |change: fn(&mut TopologyPolicy, Selector), selector| {
        let mut object = object("p");
        change(&mut object, selector);
        decided(object)
    };
    let service: fn(&mut TopologyPolicy, _) = |object, selector| object.service_selector = selector;
    let namespace: fn(&mut TopologyPolicy, _) =
        |object, selector| object.namespace_selector = selector;
    let node: fn(&mut TopologyPolicy, _) = |object, selector| object.node_selector = selector;
    assert_eq!(by(service, select("app", "cart")), (true, None));
    assert_eq!(by(service, select("app", "web")), (false, None));
    assert_eq!(by(namespace, select("tier", "backend")), (true, None));
    assert_eq!(by(namespace, select("tier", "web")), (false, None));
    assert_eq!(by(node, select("pool", "edge")), (true, None));
    assert_eq!(
        by(node, select("pool", "core")),
        (false, Some(LostBecause::OtherNode))
    );
    let exists = |operator| Selector {
        labels: Vec::new(),
        expressions: vec![Expression {
            key: "app".into(),
            operator,
            values: Vec::new(),
        }],
    };
    assert_eq!(by(service, exists(Operator::Exists)), (true, None));
    assert_eq!(by(service, exists(Operator::DoesNotExist)), (false, None));
    let for_port = |name: &str| {
        decided(TopologyPolicy {
            port_names: vec![name.into()],
            ..object("p")
        })
    };
    assert_eq!(for_port("http"), (true, None));
    assert_eq!(for_port("metrics"), (false, Some(LostBecause::OtherPort)));
}

#[test]
fn a_policy_of_another_namespace_does_not_apply() {
    let elsewhere = TopologyPolicy {
        namespace: Some("u".into()),
        ..object("near")
    };
    let found = decision(with([elsewhere]));
    assert_eq!(
        (winner(&found).0, found.lost.len()),
        (PolicySource::Uniform, 0)
    );
}

#[test]
fn a_named_policy_applies_regardless_of_its_selectors() {
    let mut special = in_namespace("special");
    special.service_selector = select("app", "nobody");
    let mut world = with([special, in_namespace("usual")]);
    world.service.named_policy = Some("special".into());
    let found = decision(world);
    assert_eq!(
        winner(&found),
        (
            PolicySource::NamespacePolicy,
            Some("TopologyPolicy t/special")
        )
    );
    assert_eq!(
        lost(&found),
        [("TopologyPolicy t/usual", LostBecause::Weaker)]
    );
}

#[test]
fn a_missing_policy_leaves_the_decision_to_the_next_source() {
    let mut world = with([in_namespace("usual")]);
    world.service.named_policy = Some("special".into());
    let found = decision(world);
    assert_eq!(winner(&found).1, Some("TopologyPolicy t/usual"));
    assert_eq!(
        found.notes,
        [Note::NoSuchPolicy {
            name: "special".into()
        }]
    );
}

#[test]
fn invalid_annotations_leave_the_decision_to_the_next_source() {
    let mut world = with([in_namespace("near")]);
    world.service.faults = Faults::Some;
    let found = decision(world);
    assert_eq!(winner(&found).1, Some("TopologyPolicy t/near"));
    assert_eq!(lost(&found), [("annotation", LostBecause::Invalid)]);
}

fn limited(limits: OwnerLimits) -> TopologyPolicy {
    TopologyPolicy {
        owner_limits: Some(limits),
        ..object("limits")
    }
}

fn asking(policy: Policy, limits: OwnerLimits) -> Decision {
    let mut world = with([limited(limits)]);
    world.service.policy = Some(policy.into());
    decision(world)
}

#[test]
fn owner_limits_raise_a_cap_with_a_note() {
    let mut policy = weighted(&[(ZONE, 100), ("*", 0)]);
    policy.max_overload = Some(0);
    let limits = OwnerLimits {
        allowed_modes: Vec::new(),
        min_max_overload: Some(20),
    };
    let found = asking(policy.clone(), limits.clone());
    assert_eq!(found.source, PolicySource::Annotation);
    let by = PolicyName::cluster("limits");
    assert_eq!(
        found.notes[0],
        Note::Clipped {
            asked: 0,
            given: 20,
            by
        }
    );
    policy.max_overload = None;
    assert_eq!(asking(policy, limits).notes, []);
}

#[test]
fn owner_limits_refuse_a_mode_and_the_next_source_decides() {
    let limits = OwnerLimits {
        allowed_modes: vec![Mode::Prefer],
        min_max_overload: None,
    };
    let found = asking(weighted(&[("*", 1)]), limits);
    assert_eq!(winner(&found).0, PolicySource::ClusterDefault);
    assert_eq!(lost(&found), [("annotation", LostBecause::NotAllowed)]);
    let (asked, by) = (Mode::Weighted, object("limits").id());
    assert_eq!(found.notes, [Note::NotAllowed { asked, by }]);
}

#[test]
fn the_scheduler_of_the_policy_is_the_servers() {
    let mut object = object("p");
    object.policy.scheduler = Some(Scheduler::Mh);
    let server = with([object]).server();
    assert_eq!(server.server.scheduler, Scheduler::Mh);
    assert_eq!(world().server().server.scheduler, Scheduler::Wrr);
}

/// Annotations without levels.
fn added(avoid: &[(LevelKey, bool)], scheduler: Option<Scheduler>) -> Policy {
    let mut policy = Policy::new(PolicySource::Annotation, Mode::None, Vec::new());
    policy.adds = true;
    policy.scheduler = scheduler;
    let avoid = avoid.iter().cloned();
    policy.avoid = avoid.map(|(key, soft)| Avoid { key, soft }).collect();
    policy
}

/// Endpoint 1 here, 2 elsewhere in this zone, 3 in the other; each is hinted for its own zone.
fn hinted() -> World {
    World::new("me")
        .node("me", &[(ZONE, "a")])
        .node("n2", &[(ZONE, "a")])
        .node("n3", &[(ZONE, "b")])
        .endpoints([
            ep(1).on("me").for_zones(&["a"]),
            ep(2).on("n2").for_zones(&["a"]),
            ep(3).on("n3").for_zones(&["b"]),
        ])
}

fn used(world: World) -> (PolicySource, Vec<String>, String) {
    let mut world = world;
    let server = world.server();
    let mut addresses: Vec<String> = (server.server.real_servers.iter())
        .map(|real| real.address.to_string())
        .collect();
    addresses.sort();
    (
        server.decision.source,
        addresses,
        server.server.scheduler.to_string(),
    )
}

#[test]
fn a_scheduler_alone_leaves_hints_and_policies_as_they_are() {
    let (source, addresses, scheduler) = used(hinted().policy(added(&[], Some(Scheduler::Mh))));
    assert_eq!((source, &*scheduler), (PolicySource::Hints, "mh"));
    assert_eq!(addresses, ["10.244.0.1", "10.244.0.2"]);
    let mut world = with([object("usual")]);
    world.service.policy = Some(added(&[], Some(Scheduler::Mh)).into());
    let (source, _, scheduler) = used(world);
    assert_eq!((source, &*scheduler), (PolicySource::ClusterDefault, "mh"));
    let mut world = with([TopologyPolicy {
        enforcement: Enforcement::Override,
        ..object("usual")
    }]);
    world.service.policy = Some(added(&[], Some(Scheduler::Mh)).into());
    let server = world.server();
    let scheduler = server.server.scheduler.to_string();
    assert_eq!(scheduler, "wrr", "an override beats annotations");
    let lost = server.decision.lost;
    let lost: Vec<_> = lost.iter().map(|lost| (lost.source, lost.why)).collect();
    assert_eq!(lost, [(PolicySource::Annotation, LostBecause::Weaker)]);
}

#[test]
fn hints_are_evaluated_again_without_excluded_endpoints_and_the_decision_says_so() {
    let zone = (LevelKey::Label(ZONE.into()), false);
    let found = decision(hinted().policy(added(&[zone], None)));
    let avoid = found.stages.iter().find(|stage| stage.number == 2).unwrap();
    assert_eq!((avoid.before, avoid.after), (2, 1));
    let facts: Vec<String> = avoid.facts.iter().map(ToString::to_string).collect();
    assert_eq!(
        facts,
        [
            "same zone is avoided: 2 out",
            "hints among the others: 1 usable"
        ]
    );
    let lost = found.lost.iter().map(|lost| lost.why);
    assert_eq!(lost.collect::<Vec<_>>(), [LostBecause::HintedElsewhere]);
}

#[test]
fn avoided_domains_are_noted_and_have_no_effect_on_local_traffic() {
    let node = (LevelKey::Node, false);
    let found = decision(hinted().policy(added(std::slice::from_ref(&node), None)));
    assert_eq!(found.avoided[0].key, LevelKey::Node);
    assert_eq!(found.notes, []);
    for (avoid, notes) in [(&[][..], &[][..]), (&[node], &[Note::AvoidLocal])] {
        let mut world = hinted().policy(added(avoid, Some(Scheduler::Mh)));
        world.service.internal_traffic_policy = TrafficPolicy::Local;
        let server = world.server();
        assert_eq!(server.server.scheduler, Scheduler::Mh);
        assert_eq!(
            (server.decision.avoided, &*server.decision.notes),
            (vec![], notes)
        );
    }
}

#[test]
fn avoid_alone_is_added_to_hints() {
    let node = |soft| added(&[(LevelKey::Node, soft)], None);
    for soft in [false, true] {
        let (source, addresses, _) = used(hinted().policy(node(soft)));
        assert_eq!(source, PolicySource::Hints);
        assert_eq!(addresses, ["10.244.0.2"], "{soft}");
    }
    // No endpoint that is hinted for this zone is left, so hints do not count, as in kube-proxy.
    let zone = added(&[(LevelKey::Label(ZONE.into()), false)], None);
    let (source, addresses, _) = used(hinted().policy(zone));
    assert_eq!(source, PolicySource::Uniform);
    assert_eq!(addresses, ["10.244.0.3"]);
}

#[test]
fn a_boundary_that_cannot_be_read_refuses_unless_an_override_decides() {
    let unread = Policy::new(PolicySource::Annotation, Mode::Hard, Vec::new());
    let mut world = hinted().policy(unread.clone());
    world.service.faults = Faults::Boundary;
    let found = decision(world);
    assert_eq!(found.refusal, Some(Refusal::BoundaryUnread));
    assert_eq!(found.notes, [Note::BoundaryUnread]);
    let mut world = with([TopologyPolicy {
        enforcement: Enforcement::Override,
        ..object("usual")
    }]);
    (world.service.policy, world.service.faults) = (Some(unread.into()), Faults::Boundary);
    assert_eq!(decision(world).source, PolicySource::ClusterOverride);
}

#[test]
fn a_version_without_levels_and_without_a_name_is_no_last_good_version() {
    let service = |policy: Option<Policy>, named: Option<&str>, faults| Service {
        policy: policy.map(Into::into),
        named_policy: named.map(Into::into),
        faults,
        ..hinted().service
    };
    let hard = || weighted(&[(ZONE, 100)]);
    let unread = Policy::new(PolicySource::Annotation, Mode::Hard, Vec::new());
    for (last, stays) in [
        (service(Some(hard()), None, Faults::None), true),
        (service(Some(hard()), None, Faults::LastGood), true),
        (service(None, Some("near"), Faults::None), true),
        (service(None, None, Faults::None), false),
        (service(None, None, Faults::Some), false),
        (
            service(
                Some(added(&[(LevelKey::Node, true)], None)),
                None,
                Faults::None,
            ),
            false,
        ),
        (service(Some(unread.clone()), None, Faults::Boundary), false),
    ] {
        let mut now = service(Some(unread.clone()), None, Faults::Boundary);
        now.keep_last_good(&last);
        assert_eq!(now.faults == Faults::LastGood, stays, "{last:?}");
        let policy = if stays {
            &last.policy
        } else {
            &Some(unread.clone().into())
        };
        assert_eq!(
            (&now.policy, now.named_policy.is_some()),
            (policy, stays && last.named_policy.is_some())
        );
    }
}

#[test]
fn a_hard_policy_of_the_cluster_waits_until_a_node_has_its_level() {
    let hard = |key: &str| cluster_policy("typo", weighted(&[(key, 100)]));
    let mut world = hinted();
    world.snapshot.set_policy(hard("example.com/typo"));
    world.snapshot.set_service(world.service.clone());
    world.snapshot.take_dirty("me");
    let server = world.server();
    assert_eq!(server.decision.refusal, None);
    assert_eq!(lost(&server.decision)[0].1, LostBecause::LevelUnknown);
    let labels = [(ZONE, "b"), ("example.com/typo", "x")];
    world.snapshot.set_node(node("n3", &labels));
    let dirty = world.snapshot.take_dirty("me");
    assert!(dirty.services.contains(&world.service.name));
    let server = world.server();
    assert_eq!(server.decision.refusal, Some(Refusal::NoMatch));
    // Without any Node the labels are unknown.
    let mut world = World::new("me").endpoints([ep(1)]);
    world.snapshot.set_policy(hard("example.com/typo"));
    assert_eq!(
        world.server().decision.refusal,
        Some(Refusal::OwnNodeUnknown)
    );
}

/// Documented in docs/topology.md: the boundary disappears with the last Node that has the label.
#[test]
fn a_hard_policy_of_the_cluster_stops_applying_when_the_last_node_with_its_level_goes() {
    let policy = cluster_policy("rack", weighted(&[("example.com/rack", 100)]));
    let with_rack = || node("n3", &[(ZONE, "b"), ("example.com/rack", "x")]);
    let mut world = hinted();
    world.snapshot.set_policy(policy);
    world.snapshot.set_service(world.service.clone());
    for leaves in [true, false] {
        world.snapshot.set_node(with_rack());
        assert_eq!(world.server().decision.refusal, Some(Refusal::NoMatch));
        world.snapshot.take_dirty("me");
        if leaves {
            world.snapshot.remove_node("n3");
        } else {
            world.snapshot.set_node(node("n3", &[(ZONE, "b")]));
        }
        let dirty = world.snapshot.take_dirty("me");
        assert!(dirty.services.contains(&world.service.name));
        let decision = world.server().decision;
        assert_eq!(decision.refusal, None);
        assert_eq!(lost(&decision)[0].1, LostBecause::LevelUnknown);
    }
}

#[test]
fn a_level_that_no_node_has_is_noted_with_a_suggestion() {
    let zone = weighted(&[("Zone", 90), ("*", 10)]);
    let mut world = hinted().policy(zone);
    let notes = world.server().decision.notes;
    let words: Vec<String> = notes.iter().map(ToString::to_string).collect();
    assert_eq!(words[0], "no Node has the label Zone, did you mean zone?");
    let rack = weighted(&[("example.com/rak", 90), ("*", 10)]);
    let labels = [("example.com/rack", "r1")];
    let labelled = hinted().node("n4", &labels).policy(rack);
    let words = decision(labelled).notes[0].to_string();
    let expected = "no Node has the label example.com/rak, did you mean example.com/rack?";
    assert_eq!(words, expected);
    let labels = [(ZONE, "b"), ("Zone", "x")];
    world.snapshot.set_node(node("n3", &labels));
    let is_unknown = |note: &Note| note.code() == "LevelUnknown";
    assert!(!world.server().decision.notes.iter().any(is_unknown));
}

#[test]
fn a_level_that_an_earlier_level_makes_unreachable_is_noted() {
    let notes = |levels: &[(&str, u32)], own: &[(&str, &str)]| {
        let mut world = hinted().policy(weighted(levels)).node("me", own);
        let notes = world.server().decision.notes.into_iter();
        let mut notes = notes.filter(|note| note.code() == "LevelUnreachable");
        notes.next().map(|note| note.to_string())
    };
    let here = [(ZONE, "a"), (REGION, "r"), (RACK, "x")];
    let unreachable = |level: &str, by: &str| {
        let words = format!(
            "level {level} never has an endpoint here, level {by} before it takes them all"
        );
        Some(words)
    };
    assert_eq!(
        notes(&[(ZONE, 80), ("node", 20)], &here),
        unreachable("node", "zone")
    );
    assert_eq!(
        notes(&[(REGION, 80), (ZONE, 20)], &here),
        unreachable("zone", "region")
    );
    assert_eq!(
        notes(&[(RACK, 80), ("node", 20)], &here),
        unreachable("node", RACK)
    );
    assert_eq!(
        notes(&[("node", 80), (ZONE, 15), (REGION, 5), ("*", 0)], &here),
        None
    );
    assert_eq!(notes(&[(ZONE, 80), (RACK, 20)], &here), None);
    // Without a zone this Node has no endpoint in its zone, but may have one on itself.
    assert_eq!(notes(&[(ZONE, 80), ("node", 20)], &[(RACK, "x")]), None);
}

#[test]
fn requested_hints_that_no_endpoint_has_are_noted() {
    let notes = |mut world: World| world.server().decision.notes;
    let asking = |wanted: HintMode| {
        let mut world = World::new("me").node("me", &[(ZONE, "a")]);
        world.service.hint_mode = wanted;
        world
    };
    for wanted in [HintMode::Auto, HintMode::SameZone, HintMode::SameNode] {
        let unhinted = || asking(wanted).endpoints([ep(1).zone("a"), ep(2).zone("b")]);
        assert_eq!(notes(unhinted()), [Note::HintsMissing { mode: wanted }]);
        assert_eq!(notes(unhinted().policy(weighted(&[("*", 100)]))), []);
        let partly = [ep(1).zone("a").for_zones(&["a"]), ep(2).zone("b")];
        assert_eq!(notes(asking(wanted).endpoints(partly)), []);
        assert_eq!(notes(asking(wanted)), []);
    }
    let nothing = asking(HintMode::Nothing).endpoints([ep(1).zone("a")]);
    assert_eq!(notes(nothing), []);
}
