//! Properties of every decision: I1 to I9 of the specification, and I10: reported shares are those of the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use topology_core::model::{DrainScope, Node, OnLastDomain, Protocol, TrafficPolicy};
use topology_core::policy::{LevelKey, Policy, PolicySource};
use topology_core::quantise::tolerance;
use topology_core::ratio::Ratio;
use topology_core::resolve::{
    Clients, EndpointDecision, Fact, Note, Reason, Resolution, ResolvedServer, resolve,
};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use crate::cluster::Cluster;
use crate::generate::{ME, NOW, cluster};
use crate::kernel;
use crate::naive::{Id, Port, View, is_hard};
use crate::yaml;

fn resolved(cluster: &Cluster) -> Resolution {
    let view = cluster.viewpoint(Some(NOW));
    resolve(&cluster.snapshot(), &view, &cluster.services[0].name)
}

/// Weights by port, address and endpoint.
fn programmed(cluster: &Cluster) -> Vec<String> {
    resolved(cluster)
        .servers
        .iter()
        .map(|server| format!("{:?}", server.server))
        .collect()
}

/// Whether a drain applies to a part of the traffic.
fn ramps(cluster: &Cluster) -> bool {
    cluster.drains.iter().any(|drain| drain.ramp_seconds > 0)
}

proptest! {
    #![proptest_config(crate::cases())]

    #[test]
    fn i1_to_i6_and_i10_hold_for_every_decision(cluster in cluster()) {
        for server in &resolved(&cluster).servers {
            let checked = holds(&cluster, server);
            prop_assert!(checked.is_ok(), "{}; the cluster:\n{}", checked.unwrap_err(), yaml::of(&cluster));
        }
    }

    #[test]
    fn i7_the_order_of_arrival_does_not_matter(cluster in cluster()) {
        let mut other = cluster.clone();
        other.nodes.reverse();
        other.slices.reverse();
        other.policies.reverse();
        other.drains.reverse();
        prop_assert_eq!(resolved(&cluster), resolved(&other), "the cluster:\n{}", yaml::of(&cluster));
    }

    #[test]
    fn i8_one_more_ready_endpoint_never_lowers_the_share_of_its_level(mut cluster in cluster(), at in any::<prop::sample::Index>()) {
        // Turning topology on or off is excluded: the fallback has its own shares.
        cluster.drains.clear();
        for policy in policies(&mut cluster) {
            (policy.min_endpoints, policy.panic_percent) = (0, 0);
            policy.avoid.clear();
        }
        // Another copy of an address would move its endpoint instead of adding one.
        let mut addresses = BTreeSet::new();
        for slice in &mut cluster.slices {
            slice.endpoints.retain(|endpoint| addresses.insert(endpoint.address));
        }
        let mut more = cluster.clone();
        let endpoints = more.slices.iter_mut().flat_map(|slice| &mut slice.endpoints);
        let mut waiting: Vec<_> = endpoints.filter(|endpoint| !endpoint.ready && !endpoint.terminating).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let chosen = at.index(waiting.len());
        let endpoint = &mut *waiting[chosen];
        (endpoint.ready, endpoint.serving) = (true, true);
        let address = endpoint.address;
        let (before, after) = (resolved(&cluster), resolved(&more));
        for (before, after) in before.servers.iter().zip(&after.servers) {
            let level = after.decision.endpoints.iter().find(|endpoint| endpoint.address == address);
            let Some(level) = level.and_then(|endpoint| endpoint.level.clone()) else {
                continue;
            };
            let share = |server: &ResolvedServer| {
                server.decision.levels.iter().find(|other| other.key == level).map(|level| level.share)
            };
            let (Some(earlier), Some(now)) = (share(before), share(after)) else {
                continue;
            };
            // Without a ready endpoint the levels did not count.
            let counted = before.decision.endpoints.iter().any(|endpoint| endpoint.reason == Reason::InLevel);
            prop_assert!(
                !counted || now >= earlier,
                "level {} had {:#} and has {:#} with {} more; the cluster:\n{}", level, earlier, now, address, yaml::of(&cluster)
            );
        }
    }

    #[test]
    fn i9_scaling_all_weights_changes_nothing(mut cluster in cluster(), factor in 2..50_u32) {
        let before = programmed(&cluster);
        for policy in policies(&mut cluster) {
            policy.levels.iter_mut().for_each(|level| level.weight *= factor);
        }
        prop_assert_eq!(before, programmed(&cluster), "the cluster:\n{}", yaml::of(&cluster));
    }

    /// KP-WK-01, KP-TP-08: inside clients get what they get with `Cluster`, outside clients endpoints of this node only.
    #[test]
    fn i11_external_traffic_policy_local_takes_no_endpoint_from_inside_clients(mut cluster in cluster()) {
        cluster.services[0].external_traffic_policy = TrafficPolicy::Cluster;
        let for_all = resolved(&cluster).servers;
        cluster.services[0].external_traffic_policy = TrafficPolicy::Local;
        let (outside, mut inside): (Vec<_>, Vec<_>) = resolved(&cluster).servers.into_iter().partition(is_marked);
        for server in &mut inside {
            server.clients = Clients::All;
        }
        prop_assert_eq!(&inside, &for_all, "the cluster:\n{}", yaml::of(&cluster));
        for server in outside {
            let elsewhere = server.decision.endpoints.iter()
                .find(|endpoint| endpoint.is_chosen() && endpoint.node.as_deref() != Some(ME));
            prop_assert!(elsewhere.is_none(), "{elsewhere:?}; the cluster:\n{}", yaml::of(&cluster));
        }
    }
}

/// Whether it serves outside clients only.
fn is_marked(resolved: &ResolvedServer) -> bool {
    matches!(resolved.server.key, VirtualServerKey::FirewallMark { .. })
}

/// Every policy, of the Service and of administrators.
fn policies(cluster: &mut Cluster) -> impl Iterator<Item = &mut Policy> {
    let own = cluster
        .services
        .iter_mut()
        .filter_map(|service| service.policy.as_mut().map(Arc::make_mut));
    own.chain(cluster.policies.iter_mut().map(|object| &mut object.policy))
}

fn holds(cluster: &Cluster, resolved: &ResolvedServer) -> Result<(), String> {
    let view = View {
        cluster,
        me: ME,
        now: Some(NOW),
        new: BTreeMap::new(),
        past: Vec::new(),
    };
    let port = Port::of(&view, resolved);
    alike_without_policy(cluster, resolved)?;
    same_weight(cluster, resolved)?;
    near_enough(cluster, resolved)?;
    fits_the_kernel(resolved)?;
    as_the_kernel_schedules(cluster, resolved)?;
    stays_inside(&port, resolved)?;
    serves(cluster, &port, resolved)
}

/// I1: if none of our policies decides, all weights are 1.
fn alike_without_policy(cluster: &Cluster, resolved: &ResolvedServer) -> Result<(), String> {
    let sources = [
        PolicySource::Uniform,
        PolicySource::Hints,
        PolicySource::InternalTrafficPolicyLocal,
        PolicySource::ExternalTrafficPolicyLocal,
    ];
    let kube_proxy = sources.contains(&resolved.decision.source) && !ramps(cluster);
    let alike = resolved
        .server
        .real_servers
        .iter()
        .all(|real| real.weight <= 1);
    check(!kube_proxy || alike, "I1: without a policy all weigh 1")
}

/// I4: lowest terms, or for `sh` all its buckets; at most 65,535, and at least 1 for an endpoint that gets traffic.
fn fits_the_kernel(resolved: &ResolvedServer) -> Result<(), String> {
    let weights = resolved.server.real_servers.iter().map(|real| real.weight);
    let positive: Vec<u32> = weights.filter(|weight| *weight > 0).collect();
    check(
        positive.iter().all(|weight| *weight <= 65_535),
        "I4: weights fit",
    )?;
    let common = positive.iter().copied().fold(0, gcd);
    let deals_out =
        resolved.server.scheduler == Scheduler::Sh && positive.iter().sum::<u32>() == 256;
    check(common <= 1 || deals_out, "I4: lowest terms")?;
    let taking = resolved
        .decision
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.reason.is_chosen());
    check(
        taking.count() == positive.len(),
        "I4: exactly the chosen endpoints have a weight of at least 1",
    )
}

fn check(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// I2: endpoints of one level, zone and capacity have the same weight; for `sh` within one bucket.
fn same_weight(cluster: &Cluster, resolved: &ResolvedServer) -> Result<(), String> {
    if ramps(cluster) {
        return Ok(());
    }
    let more = u32::from(resolved.server.scheduler == Scheduler::Sh);
    let mut weights = BTreeMap::new();
    for endpoint in resolved
        .decision
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.reason.is_chosen())
    {
        let capacity = endpoint
            .node
            .as_ref()
            .and_then(|name| cluster.node(name))
            .map_or(1, Node::capacity);
        let class = (endpoint.level.clone(), endpoint.zone.clone(), capacity);
        let weight = *weights.entry(class).or_insert(endpoint.weight);
        check(
            weight.abs_diff(endpoint.weight) <= more,
            "I2: equals weigh the same",
        )?;
    }
    Ok(())
}

/// I3: each level gets its share within the tolerance; merged levels count together.
fn near_enough(cluster: &Cluster, resolved: &ResolvedServer) -> Result<(), String> {
    let decision = &resolved.decision;
    if decision.quantised.is_none() || ramps(cluster) {
        return Ok(());
    }
    let facts = decision.stages.iter().flat_map(|stage| &stage.facts);
    let merged: BTreeMap<&LevelKey, &LevelKey> = facts
        .filter_map(|fact| match fact {
            Fact::Merged { level, into, .. } => Some((level, into)),
            _ => None,
        })
        .collect();
    let mut sums: BTreeMap<&LevelKey, (Ratio, Ratio)> = BTreeMap::new();
    for level in &decision.levels {
        let mut key = &level.key;
        while let Some(outer) = merged.get(key) {
            key = outer;
        }
        let sum = sums.entry(key).or_insert((Ratio::ZERO, Ratio::ZERO));
        *sum = (sum.0 + level.share, sum.1 + level.achieved);
    }
    let all = sums
        .values()
        .fold(Ratio::ZERO, |all, (share, _)| all + *share);
    check(all == Ratio::ONE, "shares sum up to all")?;
    let near = sums
        .values()
        .all(|(share, achieved)| achieved.distance(*share) <= tolerance(*share));
    let said = decision
        .notes
        .iter()
        .any(|note| matches!(note, Note::WeightClamped { .. }));
    check(near || said, "I3: near enough, or else it is said")
}

/// The protocol and the virtual addresses of the packets.
fn packets(cluster: &Cluster, resolved: &ResolvedServer) -> (Protocol, Vec<IpAddr>) {
    match resolved.server.key {
        VirtualServerKey::Address {
            protocol, address, ..
        } => (protocol, vec![address]),
        VirtualServerKey::FirewallMark { .. } => {
            let mut ports = cluster.services[0].ports.iter();
            let port = ports.find(|port| port.name == resolved.port_name).unwrap();
            let marked = resolved.marked.iter().map(|one| one.address).collect();
            (port.protocol, marked)
        }
    }
}

/// I10: the reported shares are those of the kernel's scheduler, for each endpoint and level.
fn as_the_kernel_schedules(cluster: &Cluster, resolved: &ResolvedServer) -> Result<(), String> {
    let (server, decision) = (&resolved.server, &resolved.decision);
    let weights: Vec<u32> = server.real_servers.iter().map(|real| real.weight).collect();
    let (protocol, destinations) = packets(cluster, resolved);
    let picks = kernel::picks(server.scheduler, &weights, protocol, &destinations);
    let Some(picks) = picks.filter(|_| decision.refusal.is_none()) else {
        return Ok(());
    };
    let all = picks.iter().sum();
    // Only `twos` is random.
    let bound = if server.scheduler == Scheduler::Twos {
        Ratio::new(2, 100)
    } else {
        Ratio::ZERO
    };
    for (real, picks) in server.real_servers.iter().zip(picks) {
        let is_real = |endpoint: &&EndpointDecision| {
            (endpoint.address, endpoint.port) == (real.address, real.port)
        };
        let found = decision
            .endpoints
            .iter()
            .find(is_real)
            .ok_or("I10: a real server without a decision")?;
        let off = found.share.distance(Ratio::new(picks, all));
        check(
            off <= bound,
            &format!(
                "I10: {} reports {:#} of {} under {} with {weights:?}, and gets {picks} of {all}",
                resolved.port_name, found.share, real.address, server.scheduler
            ),
        )?;
    }
    for level in &decision.levels {
        let inside = decision
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.level.as_ref() == Some(&level.key));
        let sum = inside.map(|endpoint| endpoint.share).sum::<Ratio>();
        check(
            sum == level.achieved,
            &format!(
                "I10: level {} achieves {:#}, not {sum:#}",
                level.key, level.achieved
            ),
        )?;
    }
    Ok(())
}

/// I5: a hard policy uses no endpoint outside its levels, not even to finish its connections.
fn stays_inside(port: &Port<'_>, resolved: &ResolvedServer) -> Result<(), String> {
    let rule = port.rule();
    let Some(policy) = rule.policy().filter(|policy| is_hard(policy)) else {
        return Ok(());
    };
    let used: BTreeSet<Id> = resolved
        .server
        .real_servers
        .iter()
        .map(|real| (real.address, real.port))
        .collect();
    let inside = |id: &Id| {
        let found = port.endpoints().into_iter().find(|ep| ep.id == *id);
        found.is_some_and(|ep| {
            policy
                .levels
                .iter()
                .any(|level| port.is_near(ep.endpoint, &level.key))
        })
    };
    check(
        used.iter().all(inside),
        "I5: no endpoint outside the levels",
    )
}

/// I6: a soft policy never refuses clients while an endpoint is ready.
fn serves(cluster: &Cluster, port: &Port<'_>, resolved: &ResolvedServer) -> Result<(), String> {
    let rule = port.rule();
    let hard = rule.policy().is_some_and(is_hard);
    let avoids = rule.avoided().iter().any(|avoid| !avoid.soft);
    let forced = cluster.drains.iter().any(|drain| {
        drain.on_last_domain == OnLastDomain::Force && drain.scope != DrainScope::Clients
    });
    let serves = resolved
        .server
        .real_servers
        .iter()
        .any(|real| real.weight > 0);
    let excused = hard || avoids || port.local || forced || port.ready().is_empty();
    check(serves || excused, "I6: an endpoint serves")?;
    check(
        serves == resolved.decision.refusal.is_none(),
        "a refusal is reported exactly if no endpoint serves",
    )
}
