//! S1: endpoints in drained domains get no new connections.
//!
//! They stay in the kernel with weight 0, so that their connections can end. If no other usable endpoint would remain,
//! drains are ignored, except forced ones (`onLastDomain: Force`) and those of clients. Endpoints in the domains that
//! are not ready no longer count either. Drains apply to Services with a hard policy only with `hardServices: Apply`.
//! Traffic policy Local is not affected. A drain that ramps applies to a part of the traffic, see [`super::drains`].
//!
//! Example: zones a, b, c with zone a drained: a node there that prefers its zone uses b and c (L15). With all three
//! drained, nothing changes (L16). The model is the zonal shift of cloud providers.

use super::drains::{ActiveDrain, covers};
use super::reason::Reason;
use super::record::Fact;
use super::source::DecidingRule;
use super::work::PortWork;
use super::{Note, Refusal, s00_usable};
use crate::model::{Drain, DrainScope, OnLastDomain};
use crate::ratio::Ratio;

/// Excludes the endpoints of drained domains.
pub(super) fn run(work: &mut PortWork<'_>) {
    if work.drains.is_empty() || matches!(work.rule, DecidingRule::Local) {
        return;
    }
    let all = work.drains.clone();
    if !remains(work, &all) {
        let (forced, ignored) = all.into_iter().partition(|active| stays(active.drain));
        work.drains = forced;
        note_ignored(work, ignored);
    }
    let drains = work.drains.clone();
    let hints = matches!(work.rule, DecidingRule::KubeProxy(_)) && remains(work, &drains);
    for active in &drains {
        take_out(work, *active);
    }
    if hints {
        s00_usable::read_hints_again(work);
    }
    let drained = work
        .candidates
        .iter()
        .any(|candidate| candidate.reason == Reason::Drained);
    if drained && work.chosen() == 0 {
        work.refusal = Some(Refusal::Drained);
    }
}

/// Whether `drain` applies even if no other endpoint remains. A drain of clients excludes no endpoint.
fn stays(drain: &Drain) -> bool {
    drain.on_last_domain == OnLastDomain::Force || drain.scope == DrainScope::Clients
}

/// Whether a usable endpoint is outside of the domains. Under kube-proxy's rules any ready one is usable, because hints
/// are evaluated again without the drained ones.
fn remains(work: &PortWork<'_>, drains: &[ActiveDrain<'_>]) -> bool {
    let hints = matches!(work.rule, DecidingRule::KubeProxy(_));
    work.candidates.iter().any(|candidate| {
        let usable = candidate.reason.is_chosen() || (hints && candidate.is_ready());
        usable && !drains.iter().any(|active| covers(active.drain, candidate))
    })
}

fn note_ignored(work: &mut PortWork<'_>, ignored: Vec<ActiveDrain<'_>>) {
    for ActiveDrain { drain, .. } in ignored {
        let touches = |candidate: &_| covers(drain, candidate);
        if work.candidates.iter().any(touches) {
            let drain = drain.name.clone();
            work.notes.push(Note::DrainIgnored { drain });
        }
    }
}

fn take_out(work: &mut PortWork<'_>, active: ActiveDrain<'_>) {
    let mut endpoints = 0;
    for candidate in &mut work.candidates {
        if !covers(active.drain, candidate) {
            continue;
        }
        candidate.excluded = true;
        if candidate.reason.is_chosen() {
            candidate.reason = Reason::Drained;
            endpoints += 1;
        }
    }
    if endpoints > 0 {
        work.facts.push(Fact::Drained {
            drain: active.drain.name.clone(),
            endpoints,
            remaining: Ratio::ZERO.max(active.remaining),
        });
    }
}
