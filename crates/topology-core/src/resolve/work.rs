//! What the stages hand on to each other.

use std::sync::Arc;

use super::candidates::{Candidate, PortCandidates};
use super::categorize::Topology;
use super::decision::{Lost, Note, Refusal};
use super::drains::InForce;
use super::port_view::PortView;
use super::reason::Reason;
use super::record::{Fact, StageRecord};
use super::source::{Choice, DecidingRule};
use super::viewpoint::Viewpoint;
use crate::memory::Remembered;
use crate::model::{Node, PolicyName};
use crate::policy::{Avoid, EmptyTier, LevelKey, Mode, OnNoMatch, Policy, PolicySource};
use crate::quantise::{Class, QuantiseMethod};
use crate::ratio::Ratio;
use crate::scheduler::Scheduler;
use crate::virtual_server::RealServer;

/// One Service port on its way through the stages.
pub(super) struct PortWork<'a> {
    pub(super) view: &'a PortView<'a>,
    pub(super) candidates: Vec<Candidate<'a>>,
    /// Those whose address can never be a real server.
    pub(super) refused: Vec<Candidate<'a>>,
    /// What decides.
    pub(super) rule: DecidingRule<'a>,
    /// The policy object that decides, if one does.
    pub(super) decided_by: Option<PolicyName>,
    /// What annotations without levels add to the rule.
    pub(super) added: Option<&'a Policy>,
    /// What else could have decided.
    pub(super) lost: Vec<Lost>,
    /// The drains that hold here.
    pub(super) drains: InForce<'a>,
    /// Whether the policy cannot be applied and all endpoints are alike.
    pub(super) uniform: bool,
    pub(super) source: PolicySource,
    pub(super) mode: Mode,
    pub(super) empty_tier: EmptyTier,
    /// The cap in force, in percent: the policy's, as far as an administrator allows it.
    pub(super) max_overload: Option<u32>,
    pub(super) on_no_match: OnNoMatch,
    pub(super) levels: Vec<LevelState>,
    /// Endpoints that share a part of a level's share.
    pub(super) pools: Vec<EndpointPool<'a>>,
    pub(super) notes: Vec<Note>,
    pub(super) records: Vec<StageRecord>,
    /// The arithmetic of the stage that runs.
    pub(super) facts: Vec<Fact>,
    pub(super) refusal: Option<Refusal>,
    /// Endpoints that get the same share each.
    pub(super) classes: Vec<Class>,
    pub(super) quantised: Option<(QuantiseMethod, u64)>,
    /// What enters the kernel, in order.
    pub(super) real_servers: Vec<RealServer>,
    /// When to ask again.
    pub(super) ask_again: Option<i64>,
    /// Endpoints that are new and count less than they will.
    pub(super) growing: u32,
    pub(super) remember: Option<Remembered>,
}

/// A level and the endpoints in it.
pub(super) struct LevelState {
    pub(super) key: LevelKey,
    /// The weight in the policy.
    pub(super) configured: u32,
    /// The share in the policy.
    pub(super) desired: Ratio,
    /// The share after the stages so far.
    pub(super) share: Ratio,
    /// Endpoints that take traffic.
    pub(super) usable: u32,
    /// Of these, how many the recovery hold lets count.
    pub(super) counted: u32,
    /// Endpoints that do not terminate.
    pub(super) lasting: u32,
    /// Endpoints that a drain keeps from new connections.
    pub(super) draining: u32,
    /// Endpoints whatever their condition.
    pub(super) total: u32,
    /// The level it merged into.
    pub(super) merged_into: Option<usize>,
    /// Whether an inner level was capped, so that this one takes what that turned away.
    pub(super) takes_residual: bool,
    /// The share the weights give.
    pub(super) achieved: Ratio,
}

/// Endpoints of one level, or of one zone in it, and what they share.
pub(super) struct EndpointPool<'a> {
    pub(super) level: usize,
    pub(super) of: PoolScope<'a>,
    pub(super) share: Ratio,
    /// The sum of their capacities.
    pub(super) capacity: u64,
    /// How many they are.
    pub(super) count: u32,
}

/// Which endpoints of a level are in a pool.
#[derive(Clone, Copy)]
pub(super) enum PoolScope<'a> {
    /// All of them.
    Level,
    /// Those in one zone, or those without one.
    Zone(Option<&'a Arc<str>>),
}

impl PoolScope<'_> {
    pub(super) fn has(self, zone: Option<&Arc<str>>) -> bool {
        match self {
            Self::Level => true,
            Self::Zone(own) => own == zone,
        }
    }
}

impl LevelState {
    pub(super) fn new(key: LevelKey, configured: u32, desired: Ratio) -> Self {
        Self {
            key,
            configured,
            desired,
            share: desired,
            usable: 0,
            counted: 0,
            lasting: 0,
            draining: 0,
            total: 0,
            merged_into: None,
            takes_residual: false,
            achieved: Ratio::ZERO,
        }
    }
}

impl<'a> PortWork<'a> {
    pub(super) fn new(
        view: &'a PortView<'a>,
        candidates: PortCandidates<'a>,
        drains: InForce<'a>,
    ) -> Self {
        Self {
            view,
            candidates: candidates.accepted,
            refused: candidates.refused,
            rule: DecidingRule::KubeProxy(Topology::Anywhere),
            decided_by: None,
            added: None,
            lost: Vec::new(),
            drains,
            uniform: false,
            source: PolicySource::Uniform,
            mode: Mode::None,
            empty_tier: EmptyTier::Cascade,
            max_overload: None,
            on_no_match: OnNoMatch::Reject,
            levels: Vec::new(),
            pools: Vec::new(),
            notes: Vec::new(),
            records: Vec::new(),
            facts: Vec::new(),
            refusal: None,
            classes: Vec::new(),
            quantised: None,
            real_servers: Vec::new(),
            ask_again: None,
            growing: 0,
            remember: None,
        }
    }

    /// Takes over what was found out about who decides.
    pub(super) fn adopt(&mut self, choice: Choice<'a>) {
        if let Some(policy) = choice.policy() {
            self.mode = policy.mode;
            self.on_no_match = policy.on_no_match;
        } else if matches!(choice.rule, DecidingRule::Local) {
            self.mode = Mode::Hard;
        }
        if let (None, Some(added)) = (choice.policy(), choice.added) {
            self.on_no_match = added.on_no_match;
        }
        self.rule = choice.rule;
        self.added = choice.added;
        self.source = choice.source;
        self.decided_by = choice.decided_by;
        self.lost = choice.lost;
        self.notes = choice.notes;
        self.max_overload = choice.max_overload;
    }

    pub(super) fn me(&self) -> &'a Viewpoint {
        self.view.me
    }

    /// The scheduler that the virtual server gets.
    pub(super) fn scheduler(&self) -> Scheduler {
        let asked = self.asked_scheduler();
        if self.me().missing.contains(&asked) {
            Scheduler::default()
        } else {
            asked
        }
    }

    /// The scheduler that the policy, or else the agent, asks for.
    pub(super) fn asked_scheduler(&self) -> Scheduler {
        let mut asks = [self.policy(), self.added].into_iter().flatten();
        let own = asks.find_map(|policy| policy.scheduler);
        own.unwrap_or(self.me().scheduler)
    }

    pub(super) fn own_node(&self) -> Option<&'a Node> {
        self.view.own_node
    }

    /// The policy that decides, unless all endpoints are alike for lack of something it needs.
    pub(super) fn policy(&self) -> Option<&'a Policy> {
        match self.rule {
            DecidingRule::Policy(policy) => Some(policy),
            DecidingRule::Local | DecidingRule::KubeProxy(_) => None,
        }
    }

    /// The domains that the policy avoids, and those that annotations add; a key that both name is the policy's.
    pub(super) fn avoided(&self) -> Vec<&'a Avoid> {
        if matches!(self.rule, DecidingRule::Local) {
            return Vec::new();
        }
        let of = |policy: Option<&'a Policy>| policy.map_or(&[][..], |policy| &policy.avoid);
        let own = of(self.policy());
        let named = |key: &LevelKey| own.iter().any(|avoid| avoid.key == *key);
        let added = of(self.added).iter().filter(|avoid| !named(&avoid.key));
        own.iter().chain(added).collect()
    }

    /// The policy, where levels are used: not for mode none, nor while all endpoints are alike.
    pub(super) fn levelled(&self) -> Option<&'a Policy> {
        let levelled = |policy: &&Policy| !self.uniform && policy.mode != Mode::None;
        self.policy().filter(levelled)
    }

    /// How many candidates may take traffic.
    pub(super) fn chosen(&self) -> u32 {
        let chosen = self
            .candidates
            .iter()
            .filter(|candidate| candidate.reason.is_chosen());
        u32::try_from(chosen.count()).unwrap_or(u32::MAX)
    }

    /// Asks to be asked again at `moment`, or sooner if somebody else does.
    pub(super) fn ask_at(&mut self, moment: i64) {
        self.ask_again = Some(self.ask_again.map_or(moment, |sooner| sooner.min(moment)));
    }

    /// One level with all traffic, and the candidates that belong to it.
    pub(super) fn one_level(&mut self, key: LevelKey, belongs: fn(&Candidate<'a>) -> bool) {
        self.levels = vec![LevelState::new(key, 100, Ratio::ONE)];
        for candidate in &mut self.candidates {
            candidate.level = belongs(candidate).then_some(0);
        }
    }

    /// Counts the endpoints of each level.
    pub(super) fn count(&mut self) {
        for candidate in &self.candidates {
            let Some(level) = candidate.level.and_then(|level| self.levels.get_mut(level)) else {
                continue;
            };
            let chosen = candidate.reason.is_chosen();
            level.total += 1;
            level.usable += u32::from(chosen);
            level.counted = level.usable;
            level.draining += u32::from(candidate.reason == Reason::Drained);
            level.lasting += u32::from(candidate.is_there());
        }
    }

    /// This node's value of the label `key`; an empty one counts as absent.
    pub(super) fn own_label(&self, key: &str) -> Option<&'a Arc<str>> {
        let label = self.own_node()?.labels.get(key);
        label.filter(|value| !value.is_empty())
    }
}
