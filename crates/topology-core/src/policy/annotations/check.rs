//! Checks the options besides the levels. One that contradicts the levels is reported and ignored.

use super::mode::LevelChoice;
use super::set::{AnnotationSet, Overload};
use crate::policy::{EmptyTier, Mode, OnNoMatch, Policy, Weighting};

/// Options that need levels.
const ABOUT_LEVELS: [&str; 7] = [
    "weighting",
    "empty-tier",
    "min-ready",
    "overprovision",
    "max-overload",
    "subset",
    "slow-start",
];

impl AnnotationSet<'_> {
    pub(super) fn fail_found(&mut self, name: &str, problem: &str) {
        let value = self.found.iter().find(|(found, _)| *found == name);
        let value = value.map_or("", |(_, value)| *value);
        self.fail(name, value, problem.to_owned());
    }

    fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(found, _)| *found == name)
    }

    /// Reports all other annotations besides the annotation `policy`.
    pub(super) fn fail_beside_name(&mut self) {
        for (name, value) in std::mem::take(&mut self.found) {
            if name != "policy" {
                let problem =
                    "the named policy decides alone; remove this one, or the annotation policy";
                self.fail(name, value, problem.to_owned());
            }
        }
    }

    /// The policy from the options and the levels.
    pub(super) fn policy_of(&mut self, meant: LevelChoice) -> Option<Policy> {
        let mut policy = self.draft.clone();
        policy.max_overload = match self.max_overload {
            Overload::Percent(percent) => Some(percent),
            Overload::Off | Overload::Unsaid => None,
        };
        match meant {
            LevelChoice::Levels(mode, levels) => (policy.mode, policy.levels) = (mode, levels),
            LevelChoice::Unread => policy.mode = Mode::Hard,
            LevelChoice::Alike => self.without_levels(
                &mut policy,
                "mode none has no levels; remove this one, or choose another mode",
            ),
            LevelChoice::Nothing => {
                policy.adds = true;
                self.without_levels(
                    &mut policy,
                    "needs weights or keys beside it; add one of them",
                );
            }
        }
        if !policy.levels.is_empty() {
            self.check_weighting(&mut policy);
            self.check_cap(&mut policy);
            self.apply_min_ready(&mut policy);
        }
        self.check_on_no_match(&mut policy);
        let adds_nothing = policy.avoid.is_empty()
            && policy.scheduler.is_none()
            && policy.on_no_match == OnNoMatch::default();
        (!policy.adds || !adds_nothing).then_some(policy)
    }

    /// Resets every option that needs levels.
    fn without_levels(&mut self, policy: &mut Policy, problem: &str) {
        // The list was reported already, and the option may fit the intended list.
        let is_unread = policy.adds && (self.has("keys") || self.has("weights"));
        for name in ABOUT_LEVELS {
            if self.has(name) && !is_unread {
                self.fail_found(name, problem);
            }
        }
        policy.weighting = Weighting::default();
        policy.empty_tier = EmptyTier::default();
        (policy.overprovision, policy.max_overload) = (None, None);
        (policy.subset_max_weight, policy.slow_start) = (None, 0);
    }

    fn check_weighting(&mut self, policy: &mut Policy) {
        if self.has("weighting") && policy.mode != Mode::Weighted {
            self.fail_found(
                "weighting",
                "says what weights mean; give weights instead of keys",
            );
            policy.weighting = Weighting::default();
        }
    }

    fn check_cap(&mut self, policy: &mut Policy) {
        if policy.mode != Mode::Balanced {
            return;
        }
        if self.max_overload == Overload::Off {
            self.fail_found(
                "max-overload",
                "balanced needs a cap; give a percentage, or use mode prefer",
            );
        }
        policy.max_overload.get_or_insert(0);
    }

    fn check_on_no_match(&mut self, policy: &mut Policy) {
        let is_bounded = policy.is_bounded() || (policy.adds && self.adds_to_boundary);
        let may_refuse = is_bounded || policy.avoid.iter().any(|avoid| !avoid.soft);
        if self.has("on-no-match") && !may_refuse {
            self.fail_found(
                "on-no-match",
                "this policy always finds an endpoint; remove it, or the `*` of the list",
            );
            policy.on_no_match = OnNoMatch::default();
        }
    }

    /// Sets the minimum of ready endpoints on the levels, unless an entry is not valid: the first such entry is reported.
    fn apply_min_ready(&mut self, policy: &mut Policy) {
        let outermost = policy.levels.len().saturating_sub(1);
        let mut levels = policy.levels.clone();
        for (key, min_ready) in std::mem::take(&mut self.min_ready) {
            let at = levels.iter().position(|level| level.key == key);
            let problem = match at.and_then(|at| Some((at, levels.get_mut(at)?))) {
                Some((at, level)) if at < outermost => {
                    level.min_ready = min_ready;
                    continue;
                }
                Some(_) => {
                    format!("level `{key}` has no next one to merge into; remove it here")
                }
                None => {
                    format!("level `{key}` is not in the list; add it there, or remove it here")
                }
            };
            return self.fail_found("min-ready", &problem);
        }
        policy.levels = levels;
    }
}
