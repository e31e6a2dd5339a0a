//! S0: which endpoints may serve.
//!
//! Ready ones. If none is ready *inside the levels* of a hard policy, those inside that terminate but still serve;
//! if none is ready *anywhere* under a soft policy, those anywhere, all alike. Source: KEP-1669 and, for hard
//! policies, the promise that nothing outside the levels is ever used.
//!
//! Example: hard `node`, the endpoint here unready and another here terminating but serving: that one is used.

use super::candidates::Candidate;
use super::categorize::serves_terminating;
use super::reason::Reason;
use super::work::Work;
use super::{Note, Refusal};
use crate::model::Endpoint;
use crate::policy::{LevelKey, Policy};

/// Settles the reason of every candidate that a level was given.
pub(super) fn choose(work: &mut Work<'_>, policy: &Policy) {
    if work.refusal == Some(Refusal::OwnNodeUnknown) {
        for candidate in &mut work.candidates {
            candidate.reason = why_unusable(candidate.endpoint).unwrap_or(Reason::OwnNodeUnknown);
        }
        return;
    }
    let ready = |candidate: &Candidate<'_>| candidate.tier.is_some() && candidate.endpoint.ready;
    if work.candidates.iter().any(ready) {
        settle(work, |endpoint| endpoint.ready, Reason::InLevel);
        return;
    }
    let fallback = |candidate: &Candidate<'_>| {
        candidate.tier.is_some() && serves_terminating(candidate.endpoint)
    };
    if work.candidates.iter().any(fallback) {
        work.notes.push(Note::ServingTerminating);
        if !policy.is_bounded() {
            work.one_tier(LevelKey::Any);
        }
    }
    settle(work, serves_terminating, Reason::ServingTerminating);
}

/// All ready endpoints alike, else all that terminate but serve.
pub(super) fn every_usable(work: &mut Work<'_>) {
    work.one_tier(LevelKey::Any);
    if work
        .candidates
        .iter()
        .any(|candidate| candidate.endpoint.ready)
    {
        settle(work, |endpoint| endpoint.ready, Reason::Ready);
        return;
    }
    settle(work, serves_terminating, Reason::ServingTerminating);
    if work
        .candidates
        .iter()
        .any(|candidate| candidate.reason.is_chosen())
    {
        work.notes.push(Note::ServingTerminating);
    }
}

/// Why `endpoint` is not used while others are ready.
pub(super) fn why_unusable(endpoint: &Endpoint) -> Option<Reason> {
    match (endpoint.ready, endpoint.terminating) {
        (true, _) => None,
        (false, true) => Some(Reason::Terminating),
        (false, false) => Some(Reason::NotReady),
    }
}

fn settle(work: &mut Work<'_>, usable: impl Fn(&Endpoint) -> bool, reason: Reason) {
    for candidate in &mut work.candidates {
        candidate.reason = match candidate.tier {
            Some(_) if usable(candidate.endpoint) => reason,
            Some(_) => why_unusable(candidate.endpoint).unwrap_or(Reason::NotReady),
            None => why_unusable(candidate.endpoint).unwrap_or(Reason::OutsideLevels),
        };
    }
}
