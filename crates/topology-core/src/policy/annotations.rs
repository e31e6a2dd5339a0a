//! The annotations `topology.ipvs-topo.io/...` of a Service.

mod check;
mod describe;
mod values;

pub use describe::{ANNOTATIONS, Annotation, Value};

use std::sync::Arc;

use super::{Level, LevelKey, MinReady, Mode, Policy, PolicyError, PolicySource};

/// What every annotation of ours begins with.
pub const PREFIX: &str = "topology.ipvs-topo.io/";

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
}

/// Levels as they were written.
struct Listed<'a> {
    text: &'a str,
    levels: Vec<Level>,
}

struct AnnotationSet<'a> {
    /// Name and value of each, as they came.
    found: Vec<(&'a str, &'a str)>,
    mode: Option<&'a str>,
    keys: Option<Listed<'a>>,
    weights: Option<Listed<'a>>,
    min_ready: Vec<(LevelKey, MinReady)>,
    max_overload: Overload,
    named: Option<Arc<str>>,
    /// The choices so far; mode and levels come last.
    draft: Policy,
    errors: Vec<PolicyError>,
}

/// What `max-overload` says.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Overload {
    #[default]
    Unsaid,
    Off,
    Percent(u32),
}

impl Default for AnnotationSet<'_> {
    fn default() -> Self {
        Self {
            found: Vec::new(),
            mode: None,
            keys: None,
            weights: None,
            min_ready: Vec::new(),
            max_overload: Overload::default(),
            named: None,
            draft: Policy::new(PolicySource::Annotation, Mode::None, Vec::new()),
            errors: Vec::new(),
        }
    }
}

impl<'a> AnnotationSet<'a> {
    fn read(&mut self, name: &'a str, value: &'a str) {
        self.found.push((name, value));
        if let Err(problem) = self.take(name, value) {
            self.fail(name, value, problem);
        }
    }

    fn take(&mut self, name: &str, text: &'a str) -> Result<(), String> {
        let listed = |levels| Some(Listed { text, levels });
        match name {
            "mode" => self.mode = Some(text),
            "keys" => self.keys = listed(values::keys(text)?),
            "weights" => self.weights = listed(values::weights(text)?),
            "weighting" => self.draft.weighting = values::weighting(text)?,
            "empty-tier" => self.draft.empty_tier = values::empty_tier(text)?,
            "min-ready" => self.min_ready = values::min_ready(text)?,
            "overprovision" => self.draft.overprovision = values::overprovision(text)?,
            "max-overload" => {
                let percent = values::max_overload(text)?;
                self.max_overload = percent.map_or(Overload::Off, Overload::Percent);
            }
            "avoid" => self.draft.avoid = values::avoid(text)?,
            "on-no-match" => self.draft.on_no_match = values::on_no_match(text)?,
            "slow-start" => self.draft.slow_start = values::slow_start(text)?,
            "policy" => self.named = Some(values::object_name(text)?.into()),
            "scheduler" => self.draft.scheduler = Some(values::scheduler(text)?.into()),
            _ => {
                let known = ANNOTATIONS.map(|known| known.name).join(", ");
                return Err(format!("unknown annotation; known are {known}"));
            }
        }
        Ok(())
    }

    fn fail(&mut self, name: &str, value: &str, problem: String) {
        self.errors.push(PolicyError {
            field: format!("{PREFIX}{name}"),
            value: value.to_owned(),
            problem,
        });
    }

    fn finish(mut self) -> Result<Option<Asked>, Vec<PolicyError>> {
        if self.found.is_empty() {
            return Ok(None);
        }
        // Faults of single values are told first; the whole is judged once they are sound.
        let asked = if self.errors.is_empty() {
            self.asked()
        } else {
            None
        };
        if self.errors.is_empty() {
            Ok(asked)
        } else {
            Err(self.errors)
        }
    }

    fn asked(&mut self) -> Option<Asked> {
        if let Some(name) = self.named.take() {
            return self.stands_alone().then_some(Asked::Named(name));
        }
        let mode = self.judge_mode()?;
        let listed = self.weights.take().or_else(|| self.keys.take());
        let levels = listed
            .filter(|_| mode != Mode::None)
            .map_or_else(Vec::new, |listed| listed.levels);
        let mut policy = Policy {
            mode,
            levels,
            ..self.draft.clone()
        };
        policy.max_overload = match self.max_overload {
            Overload::Percent(percent) => Some(percent),
            Overload::Off => None,
            Overload::Unsaid => (mode == Mode::Balanced).then_some(0),
        };
        self.judge_choices(&policy);
        self.give_min_ready(&mut policy);
        Some(Asked::Policy(Box::new(policy)))
    }
}
