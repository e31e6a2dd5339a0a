//! What `mode`, `keys` and `weights` mean together.
//!
//! Where they contradict each other, the one that is stricter holds: what can be read of a boundary is never opened.

use super::set::{AnnotationSet, LevelList};
use crate::policy::{Level, LevelKey, Mode};

/// What `mode`, `keys` and `weights` mean together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// They say nothing that can be used.
    Nothing,
    /// `mode: none`.
    Alike,
    /// Levels.
    Levels(Mode, Vec<Level>),
    /// A boundary whose levels cannot be read.
    Unread,
}

impl AnnotationSet<'_> {
    /// Whether `mode`, `keys` and `weights` form a boundary, readable or not.
    pub(super) fn forms_boundary(&self) -> bool {
        let mut lists = self.keys.iter().chain(&self.weights);
        match self.mode {
            Some(Mode::None) => false,
            Some(Mode::Hard) => true,
            _ => lists.any(LevelList::is_boundary),
        }
    }

    /// Judges `mode`, `keys` and `weights`, and reports how they contradict each other.
    pub(super) fn meant(&mut self) -> Meant {
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
                    Some(Mode::Hard) => Meant::Unread,
                    Some(Mode::None) => Meant::Alike,
                    _ => Meant::Nothing,
                };
            }
        };
        let is_boundary = list.is_boundary();
        match (mode, list.levels) {
            (Some(Mode::None), _) => Meant::Alike,
            (Some(Mode::Hard), Some(levels)) => bounded(levels, weighted),
            (Some(Mode::Hard), None) => Meant::Unread,
            (Some(Mode::Prefer | Mode::Balanced), None) if !weighted => Meant::Nothing,
            (_, None) if is_boundary => Meant::Unread,
            (_, None) => Meant::Nothing,
            (_, Some(levels)) if weighted => Meant::Levels(Mode::Weighted, levels),
            (_, Some(levels)) if is_boundary => Meant::Levels(Mode::Hard, levels),
            (Some(Mode::Balanced), Some(levels)) => Meant::Levels(Mode::Balanced, levels),
            (_, Some(levels)) => Meant::Levels(Mode::Prefer, levels),
        }
    }

    /// Of `keys` and `weights` the one that the mode asks for holds, without a mode the one that is a boundary.
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

    /// Why `mode` does not go with the list. A list that cannot be read contradicts nothing.
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
fn bounded(mut levels: Vec<Level>, weighted: bool) -> Meant {
    levels.retain(|level| level.key != LevelKey::Any);
    match (levels.is_empty(), weighted) {
        (true, _) => Meant::Unread,
        (false, true) => Meant::Levels(Mode::Weighted, levels),
        (false, false) => Meant::Levels(Mode::Hard, levels),
    }
}
