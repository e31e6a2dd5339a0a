//! The annotations `topology.ipvs-topo.io/...` of a Service.

use std::sync::Arc;

use super::{EmptyTier, Level, LevelKey, MAX_LEVELS, Mode, Policy, PolicyError, PolicySource};

/// What every annotation of ours begins with.
pub const PREFIX: &str = "topology.ipvs-topo.io/";

/// Annotations that a later version reads; a Service that carries one is told so.
const NOT_YET: [&str; 9] = [
    "weighting",
    "min-ready",
    "overprovision",
    "max-overload",
    "avoid",
    "on-no-match",
    "slow-start",
    "policy",
    "scheduler",
];

/// The most a level may weigh.
const MAX_WEIGHT: u32 = 10_000;

/// What annotations ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A policy of the Service's own.
    Policy(Box<Policy>),
    /// The `TopologyPolicy` of that name in the Service's namespace.
    Named(Arc<str>),
}

/// The policy that `annotations` ask for; `None` if none of them is ours.
///
/// # Errors
/// Everything that is wrong, not only the first fault. The set is then ignored as a whole: half a policy is
/// never applied.
pub fn from_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Option<Asked>, Vec<PolicyError>> {
    let mut set = AnnotationSet::default();
    for (key, value) in annotations {
        if let Some(name) = key.strip_prefix(PREFIX) {
            set.read(name, value.trim());
        }
    }
    set.finish()
        .map(|policy| policy.map(|policy| Asked::Policy(Box::new(policy))))
}

#[derive(Default)]
struct AnnotationSet<'a> {
    mode: Option<&'a str>,
    keys: Option<(&'a str, Vec<Level>)>,
    weights: Option<(&'a str, Vec<Level>)>,
    empty_tier: EmptyTier,
    found: bool,
    errors: Vec<PolicyError>,
}

impl<'a> AnnotationSet<'a> {
    fn read(&mut self, name: &'a str, value: &'a str) {
        self.found = true;
        match name {
            "mode" => self.mode = Some(value),
            "keys" => self.keys = self.levels(name, value, key_levels(value)),
            "weights" => self.weights = self.levels(name, value, weight_levels(value)),
            "empty-tier" => match value {
                "cascade" => self.empty_tier = EmptyTier::Cascade,
                "renormalize" => self.empty_tier = EmptyTier::Renormalize,
                _ => self.fail(
                    name,
                    value,
                    format!("`{value}` is unknown; use cascade or renormalize"),
                ),
            },
            _ if NOT_YET.contains(&name) => {
                self.fail(
                    name,
                    value,
                    "not yet supported by this version; remove it".to_owned(),
                );
            }
            _ => self.fail(
                name,
                value,
                "unknown annotation; known are mode, keys, weights and empty-tier".to_owned(),
            ),
        }
    }

    fn fail(&mut self, name: &str, value: &str, problem: String) {
        self.errors.push(PolicyError {
            field: format!("{PREFIX}{name}"),
            value: value.to_owned(),
            problem,
        });
    }

    fn levels(
        &mut self,
        name: &str,
        value: &'a str,
        parsed: Result<Vec<Level>, String>,
    ) -> Option<(&'a str, Vec<Level>)> {
        match parsed.and_then(check_levels) {
            Ok(levels) => Some((value, levels)),
            Err(problem) => {
                self.fail(name, value, problem);
                None
            }
        }
    }

    fn finish(mut self) -> Result<Option<Policy>, Vec<PolicyError>> {
        if !self.found {
            return Ok(None);
        }
        let policy = if self.errors.is_empty() {
            self.policy()
        } else {
            None
        };
        if self.errors.is_empty() {
            Ok(policy)
        } else {
            Err(self.errors)
        }
    }

    fn policy(&mut self) -> Option<Policy> {
        if let (Some(_), Some((value, _))) = (&self.weights, &self.keys) {
            let value = *value;
            self.fail(
                "keys",
                value,
                "weights is set too; keep one of them".to_owned(),
            );
            return None;
        }
        let weighted = self.weights.is_some();
        let levels = self
            .weights
            .take()
            .or_else(|| self.keys.take())
            .map_or_else(Vec::new, |(_, levels)| levels);
        let bounded = levels.last().is_none_or(|level| level.key != LevelKey::Any);
        let mode = self.mode(weighted, bounded, levels.is_empty())?;
        let levels = if mode == Mode::None {
            Vec::new()
        } else {
            levels
        };
        Some(Policy {
            empty_tier: self.empty_tier,
            ..Policy::new(PolicySource::Annotation, mode, levels)
        })
    }

    fn mode(&mut self, weighted: bool, bounded: bool, no_levels: bool) -> Option<Mode> {
        let Some(word) = self.mode else {
            if no_levels {
                self.fail(
                    "empty-tier",
                    "",
                    "needs weights or keys beside it".to_owned(),
                );
                return None;
            }
            return Some(match (weighted, bounded) {
                (true, _) => Mode::Weighted,
                (false, true) => Mode::Hard,
                (false, false) => Mode::Prefer,
            });
        };
        let problem = match word {
            "none" => return Some(Mode::None),
            "hard" | "prefer" if no_levels => "needs keys, such as keys: node,zone",
            "hard" | "prefer" if weighted => {
                "shares are given in weights; use mode weighted, or keys instead of weights"
            }
            "hard" if bounded => return Some(Mode::Hard),
            "hard" => "`*` in a hard list would let everything in; remove `*`, or use mode prefer",
            "prefer" if bounded => {
                "prefer falls back to any endpoint; end the keys with `*`, or use mode hard"
            }
            "prefer" => return Some(Mode::Prefer),
            "weighted" if weighted => return Some(Mode::Weighted),
            "weighted" => "needs weights, such as weights: node=80,zone=15,*=5",
            "balanced" => "balanced is not yet supported by this version; use prefer or weighted",
            _ => "unknown mode; use hard, prefer, weighted or none, in lower case",
        };
        self.fail("mode", word, problem.to_owned());
        None
    }
}

/// `node,zone,*`: the first level takes all, the others wait.
fn key_levels(value: &str) -> Result<Vec<Level>, String> {
    let keys = value.split(',').map(|part| LevelKey::parse(part.trim()));
    keys.enumerate()
        .map(|(at, key)| key.map(|key| Level::new(key, if at == 0 { 100 } else { 0 })))
        .collect()
}

/// `node=80,zone=15,*=5`.
fn weight_levels(value: &str) -> Result<Vec<Level>, String> {
    value
        .split(',')
        .map(|part| weight_level(part.trim()))
        .collect()
}

fn weight_level(part: &str) -> Result<Level, String> {
    let Some((key, weight)) = part.rsplit_once('=') else {
        return Err(format!(
            "`{part}` has no weight; write level=weight, such as node=80"
        ));
    };
    let digits = weight.trim();
    let weight = digits
        .parse()
        .ok()
        .filter(|weight| *weight <= MAX_WEIGHT && digits.bytes().all(|c| c.is_ascii_digit()));
    let weight = weight.ok_or_else(|| {
        format!("the weight in `{part}` is not a whole number from 0 to {MAX_WEIGHT}")
    })?;
    Ok(Level::new(LevelKey::parse(key.trim())?, weight))
}

/// The rules that `topologyKeys` had (V3-V6).
pub(super) fn check_levels(levels: Vec<Level>) -> Result<Vec<Level>, String> {
    if levels.len() > MAX_LEVELS {
        return Err(format!(
            "{} levels; at most {MAX_LEVELS} are allowed",
            levels.len()
        ));
    }
    for (at, level) in levels.iter().enumerate() {
        if levels
            .iter()
            .take(at)
            .any(|earlier| earlier.key == level.key)
        {
            return Err(format!(
                "level `{}` stands twice; keep the first",
                level.key
            ));
        }
        if level.key == LevelKey::Any && at + 1 != levels.len() {
            return Err("`*` must be the last level".to_owned());
        }
    }
    Ok(levels)
}
