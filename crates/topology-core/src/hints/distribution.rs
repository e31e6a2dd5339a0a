//! `trafficDistribution`: each endpoint is for the place it is in (KEP-4444, KEP-3015).
//!
//! Nothing is weighed: a zone with one ready endpoint sends it all of its traffic. Endpoints that are not ready keep
//! what they have and are no reason to write a slice.

use super::mode::HintMode;
use super::slices::{HintedEndpoint, HintedSlice, HintedSlices};
use crate::model::Hints;

/// Writes the hints that `mode` asks for on ready endpoints, or takes all away.
pub(super) fn write(mode: HintMode, slices: &mut HintedSlices) {
    if matches!(mode, HintMode::Auto | HintMode::Nothing) {
        slices.clear();
        return;
    }
    slices.pull(|slice| !is_right(mode, slice));
    let members = slices.written().flat_map(|slice| &mut slice.members);
    for member in members.filter(|member| member.is_ready()) {
        member.hints = own_place(mode, member);
    }
}

fn is_right(mode: HintMode, slice: &HintedSlice) -> bool {
    let mut ready = slice.members.iter().filter(|member| member.is_ready());
    ready.all(|member| member.hints == own_place(mode, member))
}

/// The hints for where `member` is; none if that is not known.
fn own_place(mode: HintMode, member: &HintedEndpoint) -> Option<Hints> {
    let node = member.node.as_ref().filter(|_| mode == HintMode::SameNode);
    let hints = Hints {
        zones: member.zone().cloned().into_iter().collect(),
        nodes: node.cloned().into_iter().collect(),
    };
    (hints != Hints::default()).then_some(hints)
}
