//! What the stages hand to each other.

use std::sync::Arc;

use super::candidates::Candidate;
use super::decision::{Note, Refusal};
use super::{PortView, Viewpoint};
use crate::model::Node;
use crate::policy::{EmptyTier, LevelKey, Mode, PolicySource};
use crate::quantise::Stage;
use crate::ratio::Ratio;

/// One Service port on its way through the stages.
pub(super) struct Work<'a> {
    pub(super) view: &'a PortView<'a>,
    pub(super) candidates: Vec<Candidate<'a>>,
    pub(super) source: PolicySource,
    pub(super) mode: Mode,
    pub(super) empty_tier: EmptyTier,
    pub(super) tiers: Vec<Tier>,
    pub(super) notes: Vec<Note>,
    pub(super) refusal: Option<Refusal>,
    pub(super) quantised: Option<(Stage, u64)>,
}

/// A level and the endpoints in it.
pub(super) struct Tier {
    pub(super) key: LevelKey,
    /// The weight in the policy.
    pub(super) configured: u32,
    /// The share in the policy.
    pub(super) wanted: Ratio,
    /// The share after the stages so far.
    pub(super) share: Ratio,
    /// Endpoints that take traffic.
    pub(super) usable: u32,
    /// Endpoints whatever their condition.
    pub(super) total: u32,
    /// The share the weights give.
    pub(super) achieved: Ratio,
}

impl Tier {
    pub(super) fn new(key: LevelKey, configured: u32, wanted: Ratio) -> Self {
        Self {
            key,
            configured,
            wanted,
            share: wanted,
            usable: 0,
            total: 0,
            achieved: Ratio::ZERO,
        }
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(view: &'a PortView<'a>, candidates: Vec<Candidate<'a>>) -> Self {
        Self {
            view,
            candidates,
            source: PolicySource::Uniform,
            mode: Mode::None,
            empty_tier: EmptyTier::Cascade,
            tiers: Vec::new(),
            notes: Vec::new(),
            refusal: None,
            quantised: None,
        }
    }

    pub(super) fn me(&self) -> &'a Viewpoint {
        self.view.me
    }

    pub(super) fn own_node(&self) -> Option<&'a Node> {
        self.view.snapshot.node(&self.view.me.node)
    }

    /// One tier with all traffic; the stages that follow fill it.
    pub(super) fn one_tier(&mut self, key: LevelKey) {
        self.tiers = vec![Tier::new(key, 100, Ratio::ONE)];
        for candidate in &mut self.candidates {
            candidate.tier = Some(0);
        }
    }

    /// Counts the endpoints of each tier.
    pub(super) fn count(&mut self) {
        for candidate in &self.candidates {
            let Some(tier) = candidate.tier.and_then(|tier| self.tiers.get_mut(tier)) else {
                continue;
            };
            tier.total += 1;
            tier.usable += u32::from(candidate.reason.is_chosen());
        }
    }

    /// The value of the label `key` on the node of `candidate`; the zone may come from the slice.
    pub(super) fn label_of(&self, candidate: &Candidate<'a>, key: &str) -> Option<&'a Arc<str>> {
        let node = candidate.endpoint.node.as_ref();
        let label = node.and_then(|name| self.view.snapshot.node(name)?.labels.get(key));
        let from_slice = || {
            (key == crate::policy::ZONE)
                .then_some(candidate.endpoint.zone.as_ref())
                .flatten()
        };
        label.or_else(from_slice).filter(|value| !value.is_empty())
    }
}
