//! Options of a policy that the vectors do not cover, one by one.

use topology_core::policy::{Avoid, LevelKey, OnNoMatch, Policy};
use topology_core::resolve::{Fact, Note, ResolvedServer, STAGES};

use crate::world::{Ep, World, ZONE, at, ep, weighted};

fn prefer() -> Policy {
    weighted(&[(ZONE, 100), ("*", 0)])
}

/// `me` in zone a, with so many endpoints in zone a, of which the first are ready, and others in zone b.
fn decide(policy: Policy, (ready, near, far): (u8, u8, u8)) -> ResolvedServer {
    let near = (0..near).map(|number| {
        let endpoint = at([10, 0, 0, number].into()).zone("a");
        if number < ready {
            endpoint
        } else {
            endpoint.unready()
        }
    });
    let far = (0..far).map(|number| at([10, 0, 1, number].into()).zone("b"));
    World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(policy)
        .endpoints(near.chain(far))
        .server()
}

fn used(server: &ResolvedServer) -> usize {
    let real = server.server.real_servers.iter();
    real.filter(|real| real.weight > 0).count()
}

#[test]
fn with_too_few_usable_endpoints_all_are_alike() {
    let mut policy = prefer();
    policy.min_endpoints = 6;
    assert_eq!(used(&decide(policy.clone(), (2, 2, 4))), 2);
    let few = decide(policy.clone(), (2, 2, 3));
    assert_eq!(used(&few), 5);
    assert_eq!(few.decision.notes, [Note::Panic]);
    let (usable, least) = (5, 6);
    assert_eq!(
        few.decision.stages[3].facts,
        [Fact::TooFew { usable, least }]
    );
    policy.levels.pop();
    assert_eq!(
        used(&decide(policy, (2, 2, 3))),
        2,
        "a hard policy does not panic"
    );
}

#[test]
fn with_too_few_ready_endpoints_all_are_alike() {
    let mut policy = prefer();
    policy.panic_percent = 50;
    assert_eq!(
        used(&decide(policy.clone(), (2, 6, 2))),
        2,
        "4 of 8 are half"
    );
    let server = decide(policy, (1, 6, 2));
    assert_eq!(used(&server), 3, "3 of 8 are less");
    assert_eq!(
        server.decision.stages[3].facts[0].to_string(),
        "3 of 8 ready < 50 %: all endpoints alike"
    );
}

#[test]
fn the_far_level_is_thinned_out_where_the_policy_allows_it() {
    let mut policy = weighted(&[(ZONE, 90), ("*", 10)]);
    assert_eq!(used(&decide(policy.clone(), (1, 1, 200))), 201);
    policy.subset_max_weight = Some(256);
    let server = decide(policy.clone(), (1, 1, 200));
    assert_eq!(
        (used(&server), server.decision.quantised.unwrap().1),
        (29, 280)
    );
    let subset = server.decision.stages[10].facts[0].to_string();
    assert_eq!(subset, "*: 28 of 200 endpoints stay");
    let reasons = server.decision.endpoints.iter().map(|e| e.reason.code());
    assert_eq!(reasons.filter(|reason| *reason == "Subset").count(), 172);
    policy.levels[0].weight = 99;
    policy.levels[1].weight = 1;
    assert_eq!(used(&decide(policy, (2, 2, 150))), 2 + 5);
}

#[test]
fn nodes_thin_out_to_different_endpoints_and_keep_them() {
    let chosen = |me: &str, count: u8| {
        let mut policy = weighted(&[("node", 99), ("*", 1)]);
        policy.subset_max_weight = Some(256);
        let far = (0..count).map(|number| at([10, 0, 1, number].into()).on("far"));
        let mut world = World::new(me)
            .node(me, &[])
            .policy(policy)
            .endpoints(far.chain([ep(1).on(me), ep(2).on(me)]));
        let real = world.server().server.real_servers;
        let mut far: Vec<_> = real
            .iter()
            .filter(|r| r.weight == 1)
            .map(|r| r.address)
            .collect();
        far.sort_unstable();
        far
    };
    let (one, other) = (chosen("n1", 150), chosen("n2", 150));
    assert_eq!((one.len(), other.len()), (5, 5));
    assert_ne!(one, other);
    let fewer = chosen("n1", 149);
    let kept = one.iter().filter(|address| fewer.contains(address)).count();
    assert!(kept >= 4, "one endpoint less moves one at most");
}

fn avoiding(entries: &[(&str, bool)]) -> Policy {
    let mut policy = prefer();
    policy.avoid = entries
        .iter()
        .map(|(key, soft)| Avoid {
            key: LevelKey::parse(key).unwrap(),
            soft: *soft,
        })
        .collect();
    policy
}

#[test]
fn a_soft_entry_is_ignored_as_a_last_resort_with_a_note() {
    let server = decide(avoiding(&[("zone", true)]), (2, 2, 0));
    assert_eq!(used(&server), 2);
    let key = LevelKey::Label(ZONE.into());
    assert_eq!(server.decision.notes, [Note::AvoidIgnored { key }]);
    assert_eq!(used(&decide(avoiding(&[("zone", true)]), (2, 2, 3))), 3);
}

#[test]
fn the_decision_has_what_clients_see() {
    let mut policy = weighted(&[(ZONE, 100)]);
    policy.on_no_match = OnNoMatch::Drop;
    let decision = decide(policy, (0, 0, 2)).decision;
    assert_eq!(decision.on_no_match, OnNoMatch::Drop);
    assert!(decision.refusal.is_some());
}

#[test]
fn every_stage_leaves_a_record() {
    let decision = decide(prefer(), (2, 3, 2)).decision;
    let records: Vec<_> = (decision.stages.iter())
        .map(|record| (record.number, record.name, record.before, record.after))
        .collect();
    let names: Vec<_> = STAGES
        .iter()
        .map(|stage| (stage.number, stage.name))
        .collect();
    assert_eq!(
        records.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(),
        names
    );
    assert_eq!((records[0].2, records[0].3), (5, 4), "one is not ready");
    assert_eq!((records[9].2, records[9].3), (4, 2), "the zone takes all");
    let lines: Vec<String> = decision.stages[4]
        .facts
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "zone: weight 100 = 1, 2 of 3 endpoints usable",
            "*: weight 0 = 0, 2 of 2 endpoints usable"
        ]
    );
}

#[test]
fn thresholds_apply_to_merged_levels_together() {
    let mut policy = weighted(&[("node", 60), (ZONE, 30), ("*", 10)]);
    policy.levels[0].min_ready.count = 2;
    policy.levels[1].min_ready.count = 2;
    let endpoints: Vec<Ep> = vec![ep(1).on("me"), ep(2).zone("a"), ep(3).zone("b")];
    let mut world = World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(policy)
        .endpoints(endpoints);
    let decision = world.server().decision;
    let weights: Vec<u32> = decision.endpoints.iter().map(|e| e.weight).collect();
    assert_eq!(weights, [9, 9, 2], "node and zone are two together");
}
