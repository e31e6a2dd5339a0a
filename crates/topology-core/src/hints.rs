//! Computes the hints that kube-controller-manager writes on endpoints: Topology Aware Hints (KEP-2433) and
//! `trafficDistribution` (KEP-4444, KEP-3015).
//!
//! ```text
//! Nodes --> Zones: CPU by zone      annotation, field --> HintMode
//!              \                     /
//!               reconcile(slices of one Service and family) --> hints on endpoints, perhaps a HintEvent
//! ```
//!
//! [`resolve`](mod@crate::resolve) reads hints, this module writes them. Together they show what a cluster without our
//! policies does. [`write()`] computes the hints of a whole Service from scratch:
//!
//! ```
//! use topology_core::hints::{self, HintMode};
//! use topology_core::model::{Endpoint, EndpointSlice, Family, ObjectName};
//!
//! let endpoint = Endpoint {
//!     address: "10.244.0.1".parse()?,
//!     node: Some("n1".into()),
//!     zone: Some("a".into()),
//!     ready: true,
//!     serving: true,
//!     terminating: false,
//!     hints: None,
//! };
//! let slice = EndpointSlice {
//!     name: ObjectName::new("shop", "cart-1"),
//!     service: "cart".into(),
//!     family: Family::V4,
//!     ports: Vec::new(),
//!     endpoints: vec![endpoint],
//!     hostnames: Default::default(),
//! };
//!
//! let mut slices = [slice];
//! hints::write(HintMode::SameZone, None, &mut slices);
//! assert_eq!(slices[0].endpoints[0].hints.as_ref().map(|hints| &*hints.zones[0]), Some("a"));
//!
//! // Topology Aware Hints need to know the CPU of each zone. Without it they remove all hints.
//! let events = hints::write(HintMode::Auto, None, &mut slices);
//! assert!(slices[0].endpoints[0].hints.is_none());
//! assert_eq!(events[0].reason(), "TopologyAwareHintsDisabled");
//! # Ok::<(), std::net::AddrParseError>(())
//! ```
//!
//! # Difference from the original
//!
//! If several zones have the same surplus or the same deficit, the original takes them in the order of a hash map. This
//! module takes them in order of name.

mod allocation;
mod auto;
mod distribution;
mod event;
mod mode;
mod slices;
#[cfg(test)]
mod tests;
mod zones;

pub use event::{HintEvent, HintProblem};
pub use mode::HintMode;
pub use slices::{HintedEndpoint, HintedSlice, HintedSlices};
pub use zones::Zones;

use crate::model::{EndpointSlice, Family};

/// Updates the hints on the slices of one Service and `family` to `mode`.
///
/// `zones` is `None` if [`Zones::of`] finds the Nodes insufficient. `hinted` says whether Topology Aware Hints were
/// recorded for the Service before. Returns an event if hints were allocated or had to be removed. An error is repeated
/// at each call, as in the original.
pub fn reconcile(
    mode: HintMode,
    zones: Option<&Zones>,
    family: Family,
    hinted: bool,
    slices: &mut HintedSlices,
) -> Option<HintEvent> {
    let outcome = match mode {
        HintMode::Auto => auto::allocate(zones, slices).map(|()| !hinted),
        HintMode::SameZone | HintMode::SameNode | HintMode::Nothing => {
            distribution::write(mode, slices);
            if hinted {
                Err(HintProblem::NoLongerRequested)
            } else {
                Ok(false)
            }
        }
    };
    match outcome {
        Ok(news) => news.then_some(HintEvent::Enabled { family }),
        Err(problem) => Some(HintEvent::Disabled { family, problem }),
    }
}

/// Replaces all hints on the slices of one Service according to `mode`. Returns the events, one family after the other.
pub fn write(
    mode: HintMode,
    zones: Option<&Zones>,
    slices: &mut [EndpointSlice],
) -> Vec<HintEvent> {
    let of_family = |family| write_family(mode, zones, family, slices);
    [Family::V4, Family::V6]
        .into_iter()
        .filter_map(of_family)
        .collect()
}

fn write_family(
    mode: HintMode,
    zones: Option<&Zones>,
    family: Family,
    slices: &mut [EndpointSlice],
) -> Option<HintEvent> {
    let mut mine: Vec<&mut EndpointSlice> = slices
        .iter_mut()
        .filter(|slice| slice.family == family)
        .collect();
    if mine.is_empty() {
        return None;
    }
    let mut fresh = HintedSlices {
        create: mine
            .iter()
            .map(|slice| HintedSlice::without_hints(slice))
            .collect(),
        ..HintedSlices::default()
    };
    let event = reconcile(mode, zones, family, false, &mut fresh);
    for (slice, written) in mine.iter_mut().zip(fresh.create) {
        for (endpoint, member) in slice.endpoints.iter_mut().zip(written.members) {
            endpoint.hints = member.hints.map(Box::new);
        }
    }
    event
}
