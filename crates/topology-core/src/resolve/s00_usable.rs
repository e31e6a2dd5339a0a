//! S0: which endpoints may serve.
//!
//! Ready ones. If none is ready *inside the levels* of a hard policy, those inside that terminate but still serve;
//! if none is ready *anywhere* under a soft policy, those anywhere, all alike. Source: KEP-1669 and, for hard
//! policies, the promise that nothing outside the levels is ever used. Without a policy of ours the rules are
//! kube-proxy's, see [`super::categorize`].
//!
//! Example: hard `node`, the endpoint here unready and another here terminating but serving: that one is used.

use super::candidates::Candidate;
use super::categorize::{Topology, serves_terminating};
use super::reason::Reason;
use super::source::Rule;
use super::work::Work;
use super::{Note, Refusal, s04_tiers};
use crate::model::Endpoint;
use crate::policy::{Mode, Policy};

/// Settles for every candidate whether it may serve.
pub(super) fn run(work: &mut Work<'_>) {
    match work.rule {
        Rule::Policy(policy) => by_policy(work, policy),
        Rule::Local => by_list(work, Reason::Local, Reason::NotLocal),
        Rule::KubeProxy(topology) => {
            let reason = match topology {
                Topology::Anywhere => Reason::Ready,
                Topology::SameNode => Reason::NodeHint,
                Topology::SameZone => Reason::ZoneHint,
            };
            by_list(work, reason, Reason::HintedElsewhere);
        }
    }
    let falls_back = |candidate: &Candidate<'_>| candidate.reason == Reason::ServingTerminating;
    if work.candidates.iter().any(falls_back) {
        work.notes.push(Note::ServingTerminating);
    }
}

fn by_policy(work: &mut Work<'_>, policy: &Policy) {
    let bounded = policy.is_bounded();
    if policy.mode != Mode::None && work.own_node().is_none() {
        work.notes.push(Note::OwnNodeUnknown);
        work.uniform = !bounded;
        if bounded {
            work.refusal = Some(Refusal::OwnNodeUnknown);
            for candidate in &mut work.candidates {
                let reason = why_unusable(candidate.endpoint);
                candidate.reason = reason.unwrap_or(Reason::OwnNodeUnknown);
            }
            return;
        }
    }
    let allowed: Vec<bool> = work
        .candidates
        .iter()
        .map(|candidate| !bounded || s04_tiers::level(work, policy, candidate).is_some())
        .collect();
    let any_ready = (work.candidates.iter().zip(&allowed))
        .any(|(candidate, allowed)| *allowed && candidate.endpoint.ready);
    let reason = match policy.mode {
        Mode::None => Reason::Ready,
        Mode::Hard | Mode::Prefer | Mode::Weighted | Mode::Balanced => Reason::InLevel,
    };
    for (candidate, allowed) in work.candidates.iter_mut().zip(allowed) {
        let endpoint = candidate.endpoint;
        candidate.reason = if endpoint.ready {
            reason
        } else if allowed && !any_ready && serves_terminating(endpoint) {
            Reason::ServingTerminating
        } else {
            why_unusable(endpoint).unwrap_or(reason)
        };
    }
    work.uniform |= !bounded && !any_ready;
}

/// Reasons for the listed candidates and for the others.
fn by_list(work: &mut Work<'_>, reason: Reason, otherwise: Reason) {
    for (index, candidate) in work.candidates.iter_mut().enumerate() {
        let endpoint = candidate.endpoint;
        candidate.reason = match work.listed.binary_search(&index) {
            Ok(_) if endpoint.ready => reason,
            Ok(_) => Reason::ServingTerminating,
            Err(_) => why_unusable(endpoint).unwrap_or(otherwise),
        };
    }
}

/// Why `endpoint` is not used while others are ready.
fn why_unusable(endpoint: &Endpoint) -> Option<Reason> {
    match (endpoint.ready, endpoint.terminating) {
        (true, _) => None,
        (false, true) => Some(Reason::Terminating),
        (false, false) => Some(Reason::NotReady),
    }
}
