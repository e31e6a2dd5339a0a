//! S0: finds the endpoints that may serve.
//!
//! These are the ready ones. If none is ready *inside the levels* of a hard policy, those inside
//! that terminate but still serve. If none is ready *anywhere* under a soft policy, those anywhere,
//! with equal shares. Source: KEP-1669 and, for hard policies, the promise that nothing outside the
//! levels is ever used. If none of our policies decides, kube-proxy's rules apply, see
//! [`super::categorize`].
//!
//! An endpoint on this node whose server closed its connection to the agent is neither ready nor serving, whatever its
//! conditions are.
//!
//! While this Node is unknown its labels are, too: a policy that ends in `*` gives all endpoints
//! the same share, any other matches none.
//!
//! Example: hard `node`, one endpoint here not ready and another one here terminating but serving:
//! that one is used.

use super::candidates::Candidate;
use super::categorize::{self, NodeHints, ProxyLocation, Topology, TrafficPolicies};
use super::reason::Reason;
use super::record::Fact;
use super::source::DecidingRule;
use super::work::PortWork;
use super::{Note, Refusal, s04_levels};
use crate::model::{Endpoint, TrafficPolicy};
use crate::policy::{Mode, Policy, PolicySource, ZONE};

/// Decides for every candidate whether it may serve.
pub(super) fn run(work: &mut PortWork<'_>) {
    match work.rule {
        DecidingRule::Policy(policy) => by_policy(work, policy),
        DecidingRule::Local => by_kube_proxy(work, TrafficPolicy::Local),
        DecidingRule::KubeProxy(_) => by_kube_proxy(work, TrafficPolicy::Cluster),
    }
    let mut candidates = work.candidates.iter();
    if candidates.any(|candidate| candidate.reason == Reason::ServingTerminating) {
        work.notes.push(Note::ServingTerminating);
    }
}

fn by_policy(work: &mut PortWork<'_>, policy: &Policy) {
    let bounded = policy.is_bounded();
    if policy.mode != Mode::None && work.own_node().is_none() {
        work.notes.push(Note::OwnNodeUnknown);
        work.uniform = !bounded;
        if bounded {
            work.refusal = Some(Refusal::OwnNodeUnknown);
            for candidate in &mut work.candidates {
                let reason = candidate.why_unusable();
                candidate.reason = reason.unwrap_or(Reason::OwnNodeUnknown);
            }
            return;
        }
    }
    if work.levelled().is_some() {
        s04_levels::find_levels(work, policy);
    }
    let mut allowed = work
        .candidates
        .iter()
        .filter(|candidate| !bounded || candidate.level.is_some());
    let any_ready = allowed.any(Candidate::is_ready);
    let reason = match policy.mode {
        Mode::None => Reason::Ready,
        Mode::Hard | Mode::Prefer | Mode::Weighted | Mode::Balanced => Reason::InLevel,
    };
    for candidate in &mut work.candidates {
        let allowed = !bounded || candidate.level.is_some();
        candidate.reason = match (candidate.is_ready(), allowed) {
            (true, true) => reason,
            (true, false) => Reason::OutsideLevels,
            (false, true) if !any_ready && candidate.serves_terminating() => {
                Reason::ServingTerminating
            }
            (false, _) => candidate.why_unusable().unwrap_or(reason),
        };
    }
    work.uniform |= !bounded && !any_ready;
}

/// Evaluates hints again among the endpoints that are not excluded.
pub(super) fn read_hints_again(work: &mut PortWork<'_>) {
    let before = work.chosen();
    by_kube_proxy(work, TrafficPolicy::Cluster);
    let usable = work.chosen();
    if usable != before {
        work.facts.push(Fact::HintsAgain { usable });
    }
}

/// Applies kube-proxy's own rules to the endpoints that are neither drained nor disconnected.
pub(super) fn by_kube_proxy(work: &mut PortWork<'_>, policy: TrafficPolicy) {
    let (indices, endpoints): (Vec<usize>, Vec<&Endpoint>) = work
        .candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.is_considered())
        .map(|(index, candidate)| (index, candidate.endpoint))
        .unzip();
    let zone = work.own_node().and_then(|node| node.labels.get(ZONE));
    let place = ProxyLocation {
        node: &work.me().node,
        zone: zone.map(|zone| &**zone),
    };
    // Each frontend has one traffic policy, which decides here as the internal one of a Service without others.
    let traffic = TrafficPolicies {
        internal: policy,
        external: TrafficPolicy::Cluster,
        externally_accessible: false,
    };
    let found = categorize::categorize(&endpoints, traffic, place, NodeHints::Honoured);
    let (listed, reason, otherwise) = match (policy, found.topology) {
        (TrafficPolicy::Local, _) => (found.local, Reason::Local, Reason::NotLocal),
        (_, Topology::Anywhere) => (found.cluster, Reason::Ready, Reason::HintedElsewhere),
        (_, Topology::SameNode) => (found.cluster, Reason::NodeHint, Reason::HintedElsewhere),
        (_, Topology::SameZone) => (found.cluster, Reason::ZoneHint, Reason::HintedElsewhere),
    };
    if policy == TrafficPolicy::Cluster {
        work.rule = DecidingRule::KubeProxy(found.topology);
        (work.source, work.mode) = match found.topology {
            Topology::Anywhere => (PolicySource::Uniform, Mode::None),
            Topology::SameNode | Topology::SameZone => (PolicySource::Hints, Mode::Prefer),
        };
    }
    let mut listed = listed.unwrap_or_default().into_iter().peekable();
    for (at, index) in indices.into_iter().enumerate() {
        let Some(candidate) = work.candidates.get_mut(index) else {
            continue;
        };
        let endpoint = candidate.endpoint;
        candidate.reason = match listed.next_if_eq(&at) {
            Some(_) if endpoint.ready => reason,
            Some(_) => Reason::ServingTerminating,
            None => candidate.why_unusable().unwrap_or(otherwise),
        };
    }
}
