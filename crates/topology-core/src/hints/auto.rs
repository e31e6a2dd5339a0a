//! Topology Aware Hints (KEP-2433): distributes endpoints over zones in proportion to their CPU, or removes all hints.

use std::sync::Arc;

use super::allocation::{Allocation, EndpointCounts, ZoneMoves};
use super::event::HintProblem;
use super::slices::{HintedSlice, HintedSlices};
use super::zones::Zones;

/// Hints each ready endpoint for exactly one zone, or removes all hints if that is not possible.
///
/// Slices in `keep` stay unchanged while their hints are within limits. This saves writes and permits some imbalance.
pub(super) fn allocate(
    zones: Option<&Zones>,
    slices: &mut HintedSlices,
) -> Result<(), HintProblem> {
    let done = try_allocate(zones, slices);
    if done.is_err() {
        slices.clear();
    }
    done
}

fn try_allocate(zones: Option<&Zones>, slices: &mut HintedSlices) -> Result<(), HintProblem> {
    let zones = zones.ok_or(HintProblem::Nodes)?;
    let allocation = Allocation::new(zones, slices.ready())?;
    let mut hinted = EndpointCounts::new();
    slices.move_to_update(|slice| match kept(slice, &allocation, &hinted) {
        Some(counts) => {
            add(&mut hinted, &counts);
            false
        }
        None => true,
    });
    hint_own_zone(slices, &mut hinted)?;
    redistribute(slices, allocation.moves(&hinted));
    Ok(())
}

/// Counts the hints of a slice that may stay unchanged, in addition to `already`.
///
/// Every ready endpoint must be hinted, only for zones with a quota, and no zone may exceed its limit.
pub(super) fn kept(
    slice: &HintedSlice,
    allocation: &Allocation,
    already: &EndpointCounts,
) -> Option<EndpointCounts> {
    let mut counts = EndpointCounts::new();
    for member in slice.members.iter().filter(|member| member.is_ready()) {
        let zones = &member.hints.as_ref()?.zones;
        if zones.is_empty() {
            return None;
        }
        for zone in zones {
            let count = counts.entry(Arc::clone(zone)).or_default();
            *count += 1;
            let others = already.get(zone).copied().unwrap_or_default();
            if *count + others > allocation.0.get(zone)?.most {
                return None;
            }
        }
    }
    Some(counts)
}

fn add(sum: &mut EndpointCounts, counts: &EndpointCounts) {
    for (zone, count) in counts {
        *sum.entry(Arc::clone(zone)).or_default() += count;
    }
}

/// Hints each ready endpoint for its own zone, and removes the hints of the others.
fn hint_own_zone(
    slices: &mut HintedSlices,
    hinted: &mut EndpointCounts,
) -> Result<(), HintProblem> {
    for member in slices.written().flat_map(|slice| &mut slice.members) {
        member.hints = None;
        if member.is_ready() {
            let zone = member
                .zone()
                .cloned()
                .ok_or(HintProblem::EndpointWithoutZone)?;
            member.hint_zone(&zone);
            *hinted.entry(zone).or_default() += 1;
        }
    }
    Ok(())
}

/// Changes the hints of the first endpoints of giving zones to receiving zones.
pub(super) fn redistribute(slices: &mut HintedSlices, mut moves: ZoneMoves) {
    for member in slices.written().flat_map(|slice| &mut slice.members) {
        let zone = member.hints.as_ref().and_then(|hints| hints.zones.first());
        let giving = zone
            .and_then(|zone| moves.give.get_mut(zone))
            .filter(|left| **left > 0);
        let receiving = moves.receive.iter_mut().find(|(_, left)| **left > 0);
        if let (Some(give), Some((zone, receive))) = (giving, receiving) {
            *give -= 1;
            *receive -= 1;
            member.hint_zone(zone);
        }
    }
}
