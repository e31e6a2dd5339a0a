//! The choices beside the levels: one that contradicts them is reported and does not count.

use super::mode::Meant;
use super::set::{AnnotationSet, Overload};
use crate::policy::{EmptyTier, Mode, OnNoMatch, Policy, Weighting};

/// Choices about levels, which mean nothing without any.
const ABOUT_LEVELS: [&str; 6] = [
    "weighting",
    "empty-tier",
    "min-ready",
    "overprovision",
    "max-overload",
    "subset",
];

impl AnnotationSet<'_> {
    pub(super) fn fail_found(&mut self, name: &str, problem: &str) {
        let value = self.found.iter().find(|(found, _)| *found == name);
        let value = value.map_or("", |(_, value)| *value).to_owned();
        self.fail(name, &value, problem.to_owned());
    }

    fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(found, _)| *found == name)
    }

    /// Reports everything that stands beside the annotation `policy`.
    pub(super) fn fail_beside_name(&mut self) {
        for (name, value) in std::mem::take(&mut self.found) {
            if name != "policy" {
                let problem =
                    "the named policy says all; remove this one, or the annotation policy";
                self.fail(name, value, problem.to_owned());
            }
        }
    }

    /// The policy that the choices and the levels are together.
    pub(super) fn policy_of(&mut self, meant: Meant) -> Option<Policy> {
        let mut policy = self.draft.clone();
        policy.max_overload = match self.max_overload {
            Overload::Percent(percent) => Some(percent),
            Overload::Off | Overload::Unsaid => None,
        };
        match meant {
            Meant::Levels(mode, levels) => (policy.mode, policy.levels) = (mode, levels),
            Meant::Unread => policy.mode = Mode::Hard,
            Meant::Alike => self.without_levels(
                &mut policy,
                "mode none has no levels; remove this one, or choose another mode",
            ),
            Meant::Nothing => {
                policy.adds = true;
                self.without_levels(
                    &mut policy,
                    "needs weights or keys beside it; add one of them",
                );
            }
        }
        if !policy.levels.is_empty() {
            self.judge_weighting(&mut policy);
            self.judge_cap(&mut policy);
            self.give_min_ready(&mut policy);
        }
        self.judge_on_no_match(&mut policy);
        let adds_nothing = policy.avoid.is_empty() && policy.scheduler.is_none();
        (!policy.adds || !adds_nothing).then_some(policy)
    }

    /// Takes back every choice about levels.
    fn without_levels(&mut self, policy: &mut Policy, problem: &str) {
        // What is wrong with the list was reported, and the choice may go well with it.
        let is_unread = policy.adds && (self.has("keys") || self.has("weights"));
        for name in ABOUT_LEVELS {
            if self.has(name) && !is_unread {
                self.fail_found(name, problem);
            }
        }
        if policy.adds && self.has("slow-start") && !is_unread {
            self.fail_found("slow-start", problem);
        }
        policy.weighting = Weighting::default();
        policy.empty_tier = EmptyTier::default();
        (policy.overprovision, policy.max_overload) = (None, None);
        policy.subset_max_weight = None;
    }

    fn judge_weighting(&mut self, policy: &mut Policy) {
        if self.has("weighting") && policy.mode != Mode::Weighted {
            self.fail_found(
                "weighting",
                "says what weights mean; give weights instead of keys",
            );
            policy.weighting = Weighting::default();
        }
    }

    fn judge_cap(&mut self, policy: &mut Policy) {
        if policy.mode != Mode::Balanced {
            return;
        }
        if self.max_overload == Overload::Off {
            self.fail_found(
                "max-overload",
                "balanced lives by its cap; give a percentage, or use mode prefer",
            );
        }
        policy.max_overload.get_or_insert(0);
    }

    fn judge_on_no_match(&mut self, policy: &mut Policy) {
        let may_refuse = policy.is_bounded() || policy.avoid.iter().any(|avoid| !avoid.soft);
        if self.has("on-no-match") && !may_refuse {
            self.fail_found(
                "on-no-match",
                "this policy always finds an endpoint; remove it, or the `*` of the list",
            );
            policy.on_no_match = OnNoMatch::default();
        }
    }

    /// Gives the levels what they must have, unless one of the entries is at fault.
    fn give_min_ready(&mut self, policy: &mut Policy) {
        let outermost = policy.levels.len().saturating_sub(1);
        let mut levels = policy.levels.clone();
        let before = self.errors.len();
        for (key, min_ready) in std::mem::take(&mut self.min_ready) {
            let at = levels.iter().position(|level| level.key == key);
            match at.and_then(|at| Some((at, levels.get_mut(at)?))) {
                Some((at, level)) if at < outermost => level.min_ready = min_ready,
                Some(_) => self.fail_found(
                    "min-ready",
                    &format!("level `{key}` has no next one to merge into; remove it here"),
                ),
                None => self.fail_found(
                    "min-ready",
                    &format!("level `{key}` is not in the list; add it there, or remove it here"),
                ),
            }
        }
        if self.errors.len() == before {
            policy.levels = levels;
        }
    }
}
