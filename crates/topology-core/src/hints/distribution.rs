//! `trafficDistribution`: hints each endpoint for its own node or zone (KEP-4444, KEP-3015).
//!
//! Load is not considered: a zone with one ready endpoint sends it all of its traffic. Endpoints that are not ready
//! keep their hints and are no reason to write a slice.

use super::mode::HintMode;
use super::slices::{HintedEndpoint, HintedSlice, HintedSlices};
use crate::model::Hints;

/// Writes the hints of `mode` on ready endpoints, or removes all hints.
pub(super) fn write(mode: HintMode, slices: &mut HintedSlices) {
    if matches!(mode, HintMode::Auto | HintMode::Nothing) {
        slices.clear();
        return;
    }
    slices.move_to_update(|slice| !is_right(mode, slice));
    let members = slices.written().flat_map(|slice| &mut slice.members);
    for member in members.filter(|member| member.is_ready()) {
        member.hints = own_place(mode, member);
    }
}

fn is_right(mode: HintMode, slice: &HintedSlice) -> bool {
    let mut ready = slice.members.iter().filter(|member| member.is_ready());
    ready.all(|member| member.hints == own_place(mode, member))
}

/// The hints for the node or zone of `member`; `None` if that is unknown.
fn own_place(mode: HintMode, member: &HintedEndpoint) -> Option<Hints> {
    let node = member.node.as_ref().filter(|_| mode == HintMode::SameNode);
    let hints = Hints {
        zones: member.zone().cloned().into_iter().collect(),
        nodes: node.cloned().into_iter().collect(),
    };
    (hints != Hints::default()).then_some(hints)
}
