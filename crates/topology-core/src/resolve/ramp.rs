//! Combines the parts of the traffic with different drains.
//!
//! The share of an endpoint is the sum over the parts: size of the part times its share there. Classes are rebuilt from
//! endpoints of the same level and share.

use super::drains::Drains;
use super::port_view::PortView;
use super::reason::Reason;
use super::stages::{STAGES, TOGETHER};
use super::work::PortWork;
use super::{candidates::PortCandidates, source::Choice, subset};
use crate::memory::ServerMemory;
use crate::quantise::Class;
use crate::ratio::Ratio;

/// Decides up to the weights: for all traffic at once, or part by part while drains ramp.
pub(super) fn decide<'a>(
    view: &'a PortView<'a>,
    candidates: PortCandidates<'a>,
    choice: Choice<'a>,
    drains: &Drains<'a>,
) -> PortWork<'a> {
    let mut phases = drains.phases();
    let (size, known) = phases.pop().unwrap_or((Ratio::ONE, Vec::new()));
    let begin = |known, candidates, choice: Choice<'a>, memory| {
        let mut work = PortWork::new(view, candidates, known);
        work.adopt(choice);
        work.memory = memory;
        for stage in STAGES.iter().filter(|stage| stage.number < TOGETHER) {
            stage.run(&mut work);
        }
        work
    };
    if phases.is_empty() {
        return begin(known, candidates, choice, None);
    }
    let mut parts: Vec<(Ratio, PortWork<'a>)> = Vec::with_capacity(phases.len());
    for (size, known) in phases {
        let memory = memory_of_first(&parts);
        let mut part = begin(known, candidates.clone(), choice.clone(), memory);
        subset::run(&mut part);
        parts.push((size, part));
    }
    let memory = memory_of_first(&parts);
    let mut work = begin(known, candidates, choice, memory);
    subset::run(&mut work);
    let mut shares = desired(&work, size);
    for (size, part) in &parts {
        add(&mut work, part);
        for (sum, share) in shares.iter_mut().zip(desired(part, *size)) {
            *sum = *sum + share;
        }
    }
    // A part may have no endpoint; the others get its share.
    let placed: Ratio = shares.iter().copied().sum();
    for share in &mut shares {
        *share = *share / placed;
    }
    settle(&mut work, &shares);
    work
}

/// What the part with the fewest drains remembers. The other parts continue from it, so that one recovery hold is in
/// force for all traffic.
fn memory_of_first(parts: &[(Ratio, PortWork<'_>)]) -> Option<ServerMemory> {
    let (_, first) = parts.first()?;
    first.memory.clone()
}

/// The share of each candidate in a part of the traffic.
fn desired(work: &PortWork<'_>, size: Ratio) -> Vec<Ratio> {
    let share = |class: Option<usize>| {
        let class = class.and_then(|class| work.classes.get(class));
        class.map_or(Ratio::ZERO, |class| class.share * size)
    };
    let classes = work.candidates.iter().map(|candidate| candidate.class);
    classes.map(share).collect()
}

/// Marks endpoints that only `part` uses as used.
fn add(work: &mut PortWork<'_>, part: &PortWork<'_>) {
    for (candidate, other) in work.candidates.iter_mut().zip(&part.candidates) {
        if candidate.class.is_some() || other.class.is_none() {
            continue;
        }
        candidate.level = candidate.level.or(other.level);
        if candidate.reason == Reason::Drained {
            candidate.reason = Reason::Draining;
        } else if !candidate.reason.is_chosen() {
            candidate.reason = other.reason;
        }
    }
    if let Some(moment) = part.resolve_again_at {
        work.ask_at(moment);
    }
}

/// Builds classes of level and share, and the shares of the levels.
fn settle(work: &mut PortWork<'_>, shares: &[Ratio]) {
    let last = work.levels.len().saturating_sub(1);
    let kind = |level: Option<usize>, share: Ratio| (level.unwrap_or(last).min(last), share);
    let pairs = work.candidates.iter().zip(shares);
    let mut kinds: Vec<(usize, Ratio)> = pairs
        .filter(|(_, share)| !share.is_zero())
        .map(|(candidate, share)| kind(candidate.level, *share))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut counts = vec![0_u32; kinds.len()];
    for level in &mut work.levels {
        level.share = Ratio::ZERO;
    }
    for (candidate, share) in work.candidates.iter_mut().zip(shares) {
        let (level, share) = kind(candidate.level, *share);
        candidate.class = kinds.binary_search(&(level, share)).ok();
        let Some(count) = candidate.class.and_then(|class| counts.get_mut(class)) else {
            continue;
        };
        *count += 1;
        if let Some(level) = work.levels.get_mut(level) {
            level.share = level.share + share;
        }
    }
    let classes = kinds.into_iter().zip(counts);
    work.classes = classes
        .map(|((level, share), count)| Class {
            level,
            share,
            count,
        })
        .collect();
    // The combined shares are not thinned out again.
    work.pools = Vec::new();
}
