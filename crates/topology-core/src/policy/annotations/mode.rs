//! Combines `mode`, `keys` and `weights`.
//!
//! If they contradict each other, the stricter one counts: a boundary that can be parsed is never removed.

use super::set::{AnnotationSet, LevelList};
use crate::policy::{Level, LevelKey, Mode};

/// The combined meaning of `mode`, `keys` and `weights`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LevelChoice {
    /// None of them can be used.
    Nothing,
    /// `mode: none`.
    Alike,
    /// Levels.
    Levels(Mode, Vec<Level>),
    /// A boundary whose levels cannot be parsed.
    Unread,
}

impl AnnotationSet<'_> {
    /// Whether `mode`, `keys` and `weights` form a boundary, even one that cannot be parsed.
    pub(super) fn forms_boundary(&self) -> bool {
        let mut lists = self.keys.iter().chain(&self.weights);
        match self.mode {
            Some(Mode::None) => false,
            Some(Mode::Hard) => true,
            _ => lists.any(LevelList::is_boundary),
        }
    }

    /// Combines `mode`, `keys` and `weights`, and reports contradictions.
    pub(super) fn level_choice(&mut self) -> LevelChoice {
        self.keep_one_list();
        let problem = self.mode.and_then(|mode| self.contradiction(mode));
        if let Some(problem) = problem {
            self.fail_found("mode", problem);
        }
        let mode = self.mode;
        let (list, weighted) = match (self.weights.take(), self.keys.take()) {
            (Some(weights), _) => (weights, true),
            (None, Some(keys)) => (keys, false),
            (None, None) => {
                return match mode {
                    Some(Mode::Hard) => LevelChoice::Unread,
                    Some(Mode::None) => LevelChoice::Alike,
                    _ => LevelChoice::Nothing,
                };
            }
        };
        let is_boundary = list.is_boundary();
        match (mode, list.levels) {
            (Some(Mode::None), _) => LevelChoice::Alike,
            (Some(Mode::Hard), Some(levels)) => bounded(levels, weighted),
            (Some(Mode::Hard), None) => LevelChoice::Unread,
            (Some(Mode::Prefer | Mode::Balanced), None) if !weighted => LevelChoice::Nothing,
            (_, None) if is_boundary => LevelChoice::Unread,
            (_, None) => LevelChoice::Nothing,
            (_, Some(levels)) if weighted => LevelChoice::Levels(Mode::Weighted, levels),
            (_, Some(levels)) if is_boundary => LevelChoice::Levels(Mode::Hard, levels),
            (Some(Mode::Balanced), Some(levels)) => LevelChoice::Levels(Mode::Balanced, levels),
            (_, Some(levels)) => LevelChoice::Levels(Mode::Prefer, levels),
        }
    }

    /// Keeps the one of `keys` and `weights` that the mode needs; without a mode, the one that is a boundary.
    fn keep_one_list(&mut self) {
        let (Some(weights), Some(keys)) = (&self.weights, &self.keys) else {
            return;
        };
        let weights_hold = match self.mode {
            Some(Mode::Hard | Mode::Prefer | Mode::Balanced) => false,
            Some(Mode::Weighted) => true,
            Some(Mode::None) | None => weights.is_boundary() || !keys.is_boundary(),
        };
        if weights_hold {
            self.keys = None;
            self.fail_found("keys", "weights is set too; keep one of them");
        } else {
            self.weights = None;
            self.fail_found("weights", "keys is set too; keep one of them");
        }
    }

    /// Why `mode` contradicts the list. A list that cannot be parsed contradicts nothing.
    fn contradiction(&self, mode: Mode) -> Option<&'static str> {
        let weighted = self.weights.is_some();
        let listed = weighted || self.keys.is_some();
        let keys = self.keys.as_ref().filter(|keys| keys.levels.is_some());
        let bounded = keys.map(LevelList::is_boundary);
        match mode {
            Mode::None => None,
            Mode::Hard | Mode::Prefer if !listed => Some("needs keys, such as keys: node,zone"),
            Mode::Balanced if !listed => Some("needs keys, such as keys: zone,*"),
            Mode::Hard | Mode::Prefer | Mode::Balanced if weighted => {
                Some("shares are given in weights; use mode weighted, or keys instead of weights")
            }
            Mode::Hard => (bounded == Some(false)).then_some(
                "`*` in a hard list would let everything in; remove `*`, or use mode prefer",
            ),
            Mode::Prefer | Mode::Balanced => (bounded == Some(true)).then_some(
                "it falls back to any endpoint; end the keys with `*`, or use mode hard",
            ),
            Mode::Weighted => {
                (!weighted).then_some("needs weights, such as weights: node=80,zone=15,*=5")
            }
        }
    }
}

/// The levels as a boundary: without `*`.
fn bounded(mut levels: Vec<Level>, weighted: bool) -> LevelChoice {
    levels.retain(|level| level.key != LevelKey::Any);
    match (levels.is_empty(), weighted) {
        (true, _) => LevelChoice::Unread,
        (false, true) => LevelChoice::Levels(Mode::Weighted, levels),
        (false, false) => LevelChoice::Levels(Mode::Hard, levels),
    }
}
