//! What the stages hand to each other.

use std::sync::Arc;

use super::candidates::{Candidate, Candidates};
use super::categorize::Topology;
use super::decision::{Note, Refusal};
use super::source::Rule;
use super::{PortView, Viewpoint};
use crate::model::Node;
use crate::policy::{EmptyTier, LevelKey, Mode, PolicySource};
use crate::quantise::{Class, Stage};
use crate::ratio::Ratio;
use crate::virtual_server::RealServer;

/// One Service port on its way through the stages.
pub(super) struct Work<'a> {
    pub(super) view: &'a PortView<'a>,
    pub(super) candidates: Vec<Candidate<'a>>,
    /// Those whose address can never be a real server.
    pub(super) refused: Vec<Candidate<'a>>,
    /// What decides.
    pub(super) rule: Rule<'a>,
    /// The candidates that kube-proxy's own rules choose, by index.
    pub(super) listed: Vec<usize>,
    /// Whether the policy cannot be applied and all endpoints are alike.
    pub(super) uniform: bool,
    pub(super) source: PolicySource,
    pub(super) mode: Mode,
    pub(super) empty_tier: EmptyTier,
    pub(super) tiers: Vec<Tier>,
    pub(super) notes: Vec<Note>,
    pub(super) refusal: Option<Refusal>,
    /// Endpoints that take traffic by tier and then capacity, with that capacity.
    pub(super) classes: Vec<(u16, Class)>,
    pub(super) quantised: Option<(Stage, u64)>,
    /// What enters the kernel, in order.
    pub(super) real_servers: Vec<RealServer>,
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
    pub(super) fn new(view: &'a PortView<'a>, candidates: Candidates<'a>) -> Self {
        Self {
            view,
            candidates: candidates.accepted,
            refused: candidates.refused,
            rule: Rule::KubeProxy(Topology::Anywhere),
            listed: Vec::new(),
            uniform: false,
            source: PolicySource::Uniform,
            mode: Mode::None,
            empty_tier: EmptyTier::Cascade,
            tiers: Vec::new(),
            notes: Vec::new(),
            refusal: None,
            classes: Vec::new(),
            quantised: None,
            real_servers: Vec::new(),
        }
    }

    pub(super) fn me(&self) -> &'a Viewpoint {
        self.view.me
    }

    pub(super) fn own_node(&self) -> Option<&'a Node> {
        self.view.snapshot.node(&self.view.me.node)
    }

    /// One tier with all traffic, and the candidates that belong to it.
    pub(super) fn one_tier(&mut self, key: LevelKey, belongs: fn(&Candidate<'a>) -> bool) {
        self.tiers = vec![Tier::new(key, 100, Ratio::ONE)];
        for candidate in &mut self.candidates {
            candidate.tier = belongs(candidate).then_some(0);
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
