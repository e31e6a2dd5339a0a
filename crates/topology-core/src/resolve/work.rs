//! The state that the stages share.

use std::sync::Arc;

use super::candidates::{Candidate, PortCandidates};
use super::categorize::Topology;
use super::decision::{Lost, Note, Refusal};
use super::drains::ActiveDrains;
use super::port_view::PortView;
use super::reason::Reason;
use super::record::{Fact, StageRecord};
use super::source::{Choice, DecidingRule};
use super::time;
use super::viewpoint::Viewpoint;
use crate::memory::ServerMemory;
use crate::model::{Node, PolicyName};
use crate::policy::{Avoid, EmptyTier, LevelKey, Mode, OnNoMatch, Policy, PolicySource};
use crate::quantise::{Class, QuantiseMethod};
use crate::ratio::Ratio;
use crate::scheduler::Scheduler;
use crate::virtual_server::RealServer;

/// A Service port on its way through the stages.
pub(super) struct PortWork<'a> {
    pub(super) view: &'a PortView<'a>,
    pub(super) candidates: Vec<Candidate<'a>>,
    /// Endpoints whose address can never be a real server.
    pub(super) refused: Vec<Candidate<'a>>,
    /// What decides.
    pub(super) rule: DecidingRule<'a>,
    /// The policy object that decides, if any.
    pub(super) decided_by: Option<PolicyName>,
    /// The policy of annotations without levels, which is added to the rule.
    pub(super) added: Option<&'a Policy>,
    /// Sources that did not decide.
    pub(super) lost: Vec<Lost>,
    /// The active drains.
    pub(super) drains: ActiveDrains<'a>,
    /// Whether the policy cannot be applied, so that all endpoints get the same share.
    pub(super) uniform: bool,
    pub(super) source: PolicySource,
    pub(super) mode: Mode,
    pub(super) empty_tier: EmptyTier,
    /// The effective cap, in percent: that of the policy, within the owner limits.
    pub(super) max_overload: Option<u32>,
    pub(super) on_no_match: OnNoMatch,
    pub(super) levels: Vec<LevelState>,
    /// Groups of endpoints that divide a part of a level's share.
    pub(super) pools: Vec<EndpointPool<'a>>,
    pub(super) notes: Vec<Note>,
    pub(super) records: Vec<StageRecord>,
    /// The calculation of the current stage.
    pub(super) facts: Vec<Fact>,
    pub(super) refusal: Option<Refusal>,
    /// Groups of endpoints with the same share each.
    pub(super) classes: Vec<Class>,
    pub(super) quantised: Option<(QuantiseMethod, u64)>,
    /// The real servers in the order in which they enter the kernel.
    pub(super) real_servers: Vec<RealServer>,
    /// When to resolve again.
    pub(super) resolve_again_at: Option<i64>,
    /// Number of endpoints in slow start.
    pub(super) growing: u32,
    pub(super) memory: Option<ServerMemory>,
}

/// A level and its endpoints.
pub(super) struct LevelState {
    pub(super) key: LevelKey,
    /// Its weight in the policy.
    pub(super) configured: u32,
    /// Its share in the policy.
    pub(super) desired: Ratio,
    /// Its share after the stages so far.
    pub(super) share: Ratio,
    /// Endpoints that get traffic.
    pub(super) usable: u32,
    /// The number of these that the recovery hold permits to count.
    pub(super) counted: u32,
    /// Endpoints that do not terminate.
    pub(super) lasting: u32,
    /// Endpoints that a drain keeps from new connections.
    pub(super) draining: u32,
    /// All endpoints.
    pub(super) total: u32,
    /// The level that it merged into.
    pub(super) merged_into: Option<usize>,
    /// Whether an inner level was capped, so that this level gets the traffic above the cap.
    pub(super) takes_residual: bool,
    /// The share that the weights result in.
    pub(super) achieved: Ratio,
}

/// Endpoints of a level, or of one zone in it, and the share that they divide.
pub(super) struct EndpointPool<'a> {
    pub(super) level: usize,
    pub(super) of: PoolScope<'a>,
    pub(super) share: Ratio,
    /// The sum of their capacities.
    pub(super) capacity: u64,
    /// Number of endpoints.
    pub(super) count: u32,
}

/// The endpoints of a level that are in a pool.
#[derive(Clone, Copy)]
pub(super) enum PoolScope<'a> {
    /// All of them.
    Level,
    /// Those in one zone, or those without a zone.
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
        drains: ActiveDrains<'a>,
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
            resolve_again_at: None,
            growing: 0,
            memory: None,
        }
    }

    /// Applies the result of the search for what decides.
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

    /// The scheduler of the virtual server.
    pub(super) fn scheduler(&self) -> Scheduler {
        let asked = self.asked_scheduler();
        if self.me().missing.contains(&asked) {
            Scheduler::default()
        } else {
            asked
        }
    }

    /// The scheduler that the policy requests, otherwise the agent's; with affinity of outside clients, a hash. DNS gives
    /// each endpoint its weight's part of the answers, as `wrr` does of the connections.
    pub(super) fn asked_scheduler(&self) -> Scheduler {
        if self.view.key().is_for_dns() {
            return Scheduler::Wrr;
        }
        if self.view.hashes_clients() {
            return Scheduler::Mh;
        }
        let mut asks = [self.policy(), self.added].into_iter().flatten();
        let own = asks.find_map(|policy| policy.scheduler);
        own.unwrap_or(self.me().scheduler)
    }

    pub(super) fn own_node(&self) -> Option<&'a Node> {
        self.view.own_node
    }

    /// The policy that decides, unless it cannot be applied.
    pub(super) fn policy(&self) -> Option<&'a Policy> {
        match self.rule {
            DecidingRule::Policy(policy) => Some(policy),
            DecidingRule::Local | DecidingRule::KubeProxy(_) => None,
        }
    }

    /// The domains that the policy avoids, and those that annotations add; for a key in both the policy's entry counts.
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

    /// The policy, if it has levels: not for mode none, nor while all endpoints get the same share.
    pub(super) fn levelled(&self) -> Option<&'a Policy> {
        let levelled = |policy: &&Policy| !self.uniform && policy.mode != Mode::None;
        self.policy().filter(levelled)
    }

    /// The number of candidates that may get traffic.
    pub(super) fn chosen(&self) -> u32 {
        let chosen = self
            .candidates
            .iter()
            .filter(|candidate| candidate.reason.is_chosen());
        u32::try_from(chosen.count()).unwrap_or(u32::MAX)
    }

    /// Requests to resolve again at `moment`, unless an earlier time was requested.
    pub(super) fn ask_at(&mut self, moment: i64) {
        self.resolve_again_at = Some(time::sooner(self.resolve_again_at, moment));
    }

    /// Creates a single level with all traffic, and assigns candidates to it.
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
