//! S2: excludes endpoints in domains of this node that the policy avoids (anti-affinity).
//!
//! A hard entry excludes every endpoint that shares this node's value of its key. A soft one does so only if another
//! usable endpoint remains; hard entries come first, then soft ones in their order.
//!
//! If kube-proxy's rules decide, the domains in annotations are excluded first, and hints are evaluated among the rest.
//!
//! Example: `avoid: node` on the node with the only endpoint refuses clients (L14); `avoid: node:soft` uses it (L13).
//! Source: the design of Service topology (anti-affinity is the outside of a domain).

use super::candidates::Candidate;
use super::reason::Reason;
use super::record::Fact;
use super::source::DecidingRule;
use super::work::PortWork;
use super::{Note, Refusal, s00_usable};
use crate::policy::{Avoid, LevelKey};

/// Excludes the endpoints of avoided domains.
pub(super) fn run(work: &mut PortWork<'_>) {
    let avoided = work.avoided();
    if avoided.is_empty() {
        return;
    }
    let before = work.chosen();
    for avoid in avoided.iter().filter(|avoid| !avoid.soft) {
        take_out(work, avoid);
    }
    read_hints_again(work);
    if before > 0 && work.chosen() == 0 {
        work.refusal = Some(Refusal::Avoided);
    }
    for avoid in avoided.iter().filter(|avoid| avoid.soft) {
        let mut usable = work
            .candidates
            .iter()
            .filter(|candidate| is_usable(candidate));
        if usable.any(|candidate| !is_near(work, candidate, &avoid.key)) {
            take_out(work, avoid);
            read_hints_again(work);
        } else if work.chosen() > 0 {
            let key = avoid.key.clone();
            work.notes.push(Note::AvoidIgnored { key });
        }
    }
}

/// Under kube-proxy's rules hints are evaluated again later, so an endpoint that is hinted elsewhere is usable, too.
fn is_usable(candidate: &Candidate<'_>) -> bool {
    let hinted_elsewhere = candidate.reason == Reason::HintedElsewhere && !candidate.excluded;
    candidate.reason.is_chosen() || hinted_elsewhere
}

/// Evaluates hints again among the remaining endpoints.
fn read_hints_again(work: &mut PortWork<'_>) {
    let is_left = |candidate: &Candidate<'_>| !candidate.excluded && candidate.is_ready();
    if matches!(work.rule, DecidingRule::KubeProxy(_)) && work.candidates.iter().any(is_left) {
        s00_usable::read_hints_again(work);
    }
}

/// Whether `candidate` shares this node's value of `key`.
fn is_near(work: &PortWork<'_>, candidate: &Candidate<'_>, key: &LevelKey) -> bool {
    match key {
        LevelKey::Any => true,
        LevelKey::Node => candidate.local,
        LevelKey::Label(key) => {
            let mine = work.own_label(key);
            mine.is_some() && candidate.label(key) == mine
        }
    }
}

fn take_out(work: &mut PortWork<'_>, avoid: &Avoid) {
    let near: Vec<bool> = work
        .candidates
        .iter()
        .map(|candidate| is_near(work, candidate, &avoid.key))
        .collect();
    let mut endpoints = 0;
    for (candidate, near) in work.candidates.iter_mut().zip(near) {
        candidate.excluded |= near;
        if near && candidate.reason.is_chosen() {
            candidate.reason = Reason::Avoided;
            endpoints += 1;
        }
    }
    if endpoints > 0 {
        let key = avoid.key.clone();
        work.facts.push(Fact::Avoided { key, endpoints });
    }
}
