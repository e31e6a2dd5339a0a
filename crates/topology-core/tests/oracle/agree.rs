//! Both engines give the same result for the same cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use topology_core::memory::Memory;
use topology_core::model::Drain;
use topology_core::resolve::{
    Finding, FindingKind, Refusal, Resolution, ResolvedServer, Viewpoint, resolve,
};
use topology_core::scheduler::Scheduler;

use crate::cluster::Cluster;
use crate::frac::overflown;
use crate::generate::{ME, NOW, cluster, drain};
use crate::naive::quantise::buckets;
use crate::naive::servers::{Server, marks_are_unique};
use crate::naive::{Id, Outcome, Port, View};
use crate::yaml;

/// The time of the query, and the history.
#[derive(Debug, Clone)]
pub(crate) enum Time {
    /// Without a clock.
    Offline,
    /// The first query.
    First,
    /// A later query: endpoints whose address ends in one of these numbers became ready so many milliseconds ago.
    Later { new: BTreeSet<u8>, age: i64 },
}

fn times() -> impl Strategy<Value = Time> {
    let later = (
        proptest::collection::btree_set(1..30_u8, 0..15),
        0..100_000_i64,
    );
    prop_oneof![
        1 => Just(Time::Offline),
        2 => Just(Time::First),
        2 => later.prop_map(|(new, age)| Time::Later { new, age }),
    ]
}

/// The result of the engine under test.
fn engine(resolved: &ResolvedServer) -> Outcome {
    let reals = &resolved.server.real_servers;
    let weights: BTreeMap<Id, u32> = reals
        .iter()
        .map(|real| ((real.address, real.port), real.weight))
        .collect();
    assert_eq!(weights.len(), reals.len(), "no real server twice");
    Outcome {
        scheduler: resolved.server.scheduler,
        weights,
        refused: resolved.decision.refusal.is_some(),
    }
}

/// The cluster before the new endpoints were ready.
fn before(cluster: &Cluster, new: &BTreeSet<u8>) -> Cluster {
    let mut earlier = cluster.clone();
    for endpoint in earlier
        .slices
        .iter_mut()
        .flat_map(|slice| &mut slice.endpoints)
    {
        let last = match endpoint.address {
            std::net::IpAddr::V4(v4) => v4.octets()[3],
            std::net::IpAddr::V6(v6) => v6.octets()[15],
        };
        endpoint.ready &= !new.contains(&last);
    }
    earlier
}

/// The times of earlier queries, with the clusters then.
fn history(cluster: &Cluster, time: &Time) -> Vec<(i64, Cluster)> {
    match time {
        Time::Offline | Time::First => Vec::new(),
        Time::Later { new, age } => vec![
            (NOW - age - 1000, before(cluster, new)),
            (NOW - age, cluster.clone()),
        ],
    }
}

/// The engine's memory after `history`.
fn memory(history: &[(i64, Cluster)]) -> Arc<Memory> {
    let mut memory = Arc::default();
    for (now, cluster) in history {
        let mut view = Viewpoint {
            memory,
            ..cluster.viewpoint(Some(*now))
        };
        let name = &cluster.services[0].name;
        let resolution = resolve(&cluster.snapshot(), &view, name);
        Arc::make_mut(&mut view.memory).store(name, &resolution);
        memory = view.memory;
    }
    memory
}

/// Endpoints of the port that became ready while others were.
fn newcomers(port: &Port<'_>, time: &Time) -> BTreeMap<Id, i64> {
    let Time::Later { new, age } = time else {
        return BTreeMap::new();
    };
    let earlier = before(port.view.cluster, new);
    let view = View {
        cluster: &earlier,
        me: ME,
        now: None,
        new: BTreeMap::new(),
        past: Vec::new(),
    };
    let then = Port {
        view: &view,
        ..*port
    }
    .ready();
    if then.is_empty() {
        return BTreeMap::new();
    }
    let now = port.ready();
    now.difference(&then).map(|id| (*id, NOW - age)).collect()
}

/// Whether both results have the same virtual servers.
fn same_servers(cluster: &Cluster, resolution: &Resolution) -> Result<(), TestCaseError> {
    let mut findings = resolution.findings.iter();
    let repeated = |finding: &Finding| matches!(finding.kind, FindingKind::PortRepeated { .. });
    prop_assert!(findings.all(repeated), "{:?}", resolution.findings);
    let mut theirs: Vec<Server> = resolution.servers.iter().map(Server::of).collect();
    theirs.sort();
    prop_assert_eq!(
        theirs,
        Server::all(cluster, &cluster.services[0]),
        "left the engine, right the oracle; the cluster:\n{}",
        yaml::of(cluster)
    );
    marks_are_unique(&resolution.servers).map_err(TestCaseError::fail)
}

/// Whether both results are the same for every port.
pub(crate) fn compare(cluster: &Cluster, time: &Time) -> Result<(), TestCaseError> {
    let now = (!matches!(time, Time::Offline)).then_some(NOW);
    let mut viewpoint = cluster.viewpoint(now);
    let history = history(cluster, time);
    viewpoint.memory = memory(&history);
    let service = &cluster.services[0];
    let resolution = resolve(&cluster.snapshot(), &viewpoint, &service.name);
    same_servers(cluster, &resolution)?;
    let past: Vec<(i64, &Cluster)> = history.iter().map(|(at, then)| (*at, then)).collect();
    let view = View {
        cluster,
        me: ME,
        now: viewpoint.now,
        new: BTreeMap::new(),
        past: past.clone(),
    };
    for resolved in &resolution.servers {
        let new = newcomers(&Port::of(&view, resolved), time);
        let past = past.clone();
        let view = View { new, past, ..view };
        let asked = Port::of(&view, resolved);
        let mut theirs = engine(resolved);
        overflown();
        let ours = asked.decide();
        if overflown() {
            continue;
        }
        if ours.scheduler == Scheduler::Sh && theirs.scheduler == Scheduler::Sh {
            let dealt = buckets::rest(&ours.weights, &mut theirs.weights);
            prop_assert!(
                dealt.is_ok(),
                "{}, {theirs:?}; the cluster:\n{}",
                dealt.unwrap_err(),
                yaml::of(cluster)
            );
        }
        prop_assert_eq!(
            &theirs,
            &ours,
            "left the engine, right the oracle, on {} port {} at {:?}; the cluster:\n{}",
            resolved.server.key,
            resolved.port_name,
            time,
            yaml::of(cluster)
        );
        let no_match = resolved.decision.refusal == Some(Refusal::NoMatch);
        if let Some(drops) = asked.on_no_match().filter(|_| no_match) {
            prop_assert_eq!(resolved.decision.on_no_match, drops);
        }
    }
    Ok(())
}

/// The cluster with a recovery hold in every policy, and with a drain that ramps.
fn waiting(mut cluster: Cluster, drain: Drain, hold: u32) -> Cluster {
    let own = cluster
        .services
        .iter_mut()
        .filter_map(|service| service.policy.as_mut());
    let own = own.map(Arc::make_mut);
    let objects = cluster.policies.iter_mut().map(|object| &mut object.policy);
    for policy in own.chain(objects) {
        policy.recovery_hold = hold;
        policy.overprovision.get_or_insert(100);
    }
    cluster.drains = vec![Drain {
        starts: NOW - 50_000,
        expires: NOW + 100_000,
        ramp_seconds: 100,
        ..drain
    }];
    cluster
}

proptest! {
    #![proptest_config(crate::cases())]

    #[test]
    fn oracle_and_engine_agree(cluster in cluster(), time in times()) {
        compare(&cluster, &time)?;
    }

    #[test]
    fn they_agree_about_levels_that_wait_while_a_drain_ramps(
        cluster in cluster(),
        drain in drain(),
        hold in 1..100_u32,
        new in proptest::collection::btree_set(1..30_u8, 0..25),
        age in 0..20_000_i64,
    ) {
        let cluster = waiting(cluster, drain, hold);
        compare(&cluster, &Time::Later { new, age })?;
    }
}
