//! What annotations say together.

use super::{AnnotationSet, Overload};
use crate::policy::{LevelKey, Mode, Policy};

impl AnnotationSet<'_> {
    fn fail_found(&mut self, name: &str, problem: &str) {
        let value = self.found.iter().find(|(found, _)| *found == name);
        let value = value.map_or("", |(_, value)| *value).to_owned();
        self.fail(name, &value, problem.to_owned());
    }

    fn has(&self, name: &str) -> bool {
        self.found.iter().any(|(found, _)| *found == name)
    }

    /// Whether `policy` is the only annotation, as it must be.
    pub(super) fn stands_alone(&mut self) -> bool {
        let others: Vec<&str> = self.found.iter().map(|(name, _)| *name).collect();
        for name in others.iter().filter(|name| **name != "policy") {
            self.fail_found(
                name,
                "the named policy says all; remove this one, or the annotation policy",
            );
        }
        self.errors.is_empty()
    }

    /// What is meant as a whole: said by `mode`, or by what is listed.
    pub(super) fn judge_mode(&mut self) -> Option<Mode> {
        if let (Some(_), Some(keys)) = (&self.weights, &self.keys) {
            let text = keys.text.to_owned();
            self.fail(
                "keys",
                &text,
                "weights is set too; keep one of them".to_owned(),
            );
            return None;
        }
        let listed = self.weights.as_ref().or(self.keys.as_ref());
        let last = listed.and_then(|listed| listed.levels.last());
        let bounded = last.is_none_or(|level| level.key != LevelKey::Any);
        let lists = (self.weights.is_some(), listed.is_some());
        let Some(word) = self.mode else {
            return match lists {
                (true, _) => Some(Mode::Weighted),
                (false, true) if bounded => Some(Mode::Hard),
                (false, true) => Some(Mode::Prefer),
                (false, false) => self.fail_without_levels(),
            };
        };
        match mode(word, lists, bounded) {
            Ok(mode) => Some(mode),
            Err(problem) => {
                self.fail("mode", word, problem.to_owned());
                None
            }
        }
    }

    fn fail_without_levels(&mut self) -> Option<Mode> {
        let names: Vec<&str> = self.found.iter().map(|(name, _)| *name).collect();
        for name in names {
            self.fail_found(
                name,
                "needs weights or keys beside it; or add mode none to keep all endpoints alike",
            );
        }
        None
    }

    /// Choices that contradict the mode or the levels.
    pub(super) fn judge_choices(&mut self, policy: &Policy) {
        let without_levels = [
            "weighting",
            "empty-tier",
            "min-ready",
            "overprovision",
            "max-overload",
        ];
        for name in without_levels {
            if policy.mode == Mode::None && self.has(name) {
                self.fail_found(
                    name,
                    "mode none has no levels; remove this one, or choose another mode",
                );
            }
        }
        if self.has("weighting") && policy.mode != Mode::Weighted && policy.mode != Mode::None {
            self.fail_found(
                "weighting",
                "says what weights mean; give weights instead of keys",
            );
        }
        if policy.mode == Mode::Balanced && self.max_overload == Overload::Off {
            self.fail_found(
                "max-overload",
                "balanced lives by its cap; give a percentage, or use mode prefer",
            );
        }
        let may_refuse = policy.is_bounded() || policy.avoid.iter().any(|avoid| !avoid.soft);
        if self.has("on-no-match") && !may_refuse {
            self.fail_found(
                "on-no-match",
                "this policy always finds an endpoint; remove it, or the `*` of the list",
            );
        }
    }

    /// Gives the levels what they must have.
    pub(super) fn give_min_ready(&mut self, policy: &mut Policy) {
        let outermost = policy.levels.len().saturating_sub(1);
        for (key, min_ready) in std::mem::take(&mut self.min_ready) {
            let at = policy.levels.iter().position(|level| level.key == key);
            match at.and_then(|at| Some((at, policy.levels.get_mut(at)?))) {
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
    }
}

/// The mode that `word` names, if it goes with what is listed.
fn mode(word: &str, (weighted, listed): (bool, bool), bounded: bool) -> Result<Mode, &'static str> {
    match word {
        "none" => Ok(Mode::None),
        "hard" | "prefer" if !listed => Err("needs keys, such as keys: node,zone"),
        "balanced" if !listed => Err("needs keys, such as keys: zone,*"),
        "hard" | "prefer" | "balanced" if weighted => {
            Err("shares are given in weights; use mode weighted, or keys instead of weights")
        }
        "hard" if bounded => Ok(Mode::Hard),
        "hard" => Err("`*` in a hard list would let everything in; remove `*`, or use mode prefer"),
        "prefer" | "balanced" if bounded => {
            Err("it falls back to any endpoint; end the keys with `*`, or use mode hard")
        }
        "prefer" => Ok(Mode::Prefer),
        "balanced" => Ok(Mode::Balanced),
        "weighted" if weighted => Ok(Mode::Weighted),
        "weighted" => Err("needs weights, such as weights: node=80,zone=15,*=5"),
        _ => Err("unknown mode; use hard, prefer, weighted, balanced or none, in lower case"),
    }
}
