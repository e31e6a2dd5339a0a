//! The annotations `topology.ipvs-topo.io/...` of a Service.
//!
//! A fault costs the annotation that has it and no other, except that a boundary is never opened by a mistake: where
//! the levels of a hard policy, or the name of the policy, cannot be read, the reading stands for a boundary that holds nothing
//! ([`AnnotationReading::boundary_unread`]).

mod check;
mod describe;
mod mode;
mod values;

pub use describe::{ANNOTATIONS, Annotation, ValueKind};

use std::sync::Arc;

use super::{Level, LevelKey, MinReady, Mode, Policy, PolicyError, PolicySource};

/// What every annotation of ours begins with.
pub const PREFIX: &str = "topology.ipvs-topo.io/";

/// What annotations ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationRequest {
    /// A policy of the Service's own.
    Policy(Box<Policy>),
    /// The `TopologyPolicy` of that name in the Service's namespace.
    Named(Arc<str>),
}

/// What a Service asks for that has annotations and `spec.topologyKeys`: annotations with levels, or a named policy, win;
/// those without levels add to the keys.
pub fn beside_topology_keys(
    annotated: Option<AnnotationRequest>,
    keys: Option<Policy>,
) -> Option<AnnotationRequest> {
    let Some(keys) = keys else {
        return annotated;
    };
    let policy = match annotated {
        None => keys,
        Some(AnnotationRequest::Policy(added)) if added.adds => Policy {
            avoid: added.avoid,
            on_no_match: added.on_no_match,
            scheduler: added.scheduler,
            ..keys
        },
        Some(asked) => return Some(asked),
    };
    Some(AnnotationRequest::Policy(Box::new(policy)))
}

/// What annotations amount to, faulty or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationReading {
    /// What the annotations without a fault ask for; `None` if that is nothing.
    pub asked: Option<AnnotationRequest>,
    /// Everything that is wrong, not only the first fault.
    pub errors: Vec<PolicyError>,
    /// Whether the levels of a hard policy, or the name of the policy, cannot be read. `asked` is then a boundary that
    /// holds no endpoint.
    pub boundary_unread: bool,
    /// Whether it is the name of the policy.
    pub name_unread: bool,
}

/// The policy that `annotations` ask for, if all of them are sound; `None` if none of them is ours.
///
/// # Errors
/// Everything that is wrong, not only the first fault.
pub fn from_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Option<AnnotationRequest>, Vec<PolicyError>> {
    let annotations = annotations.into_iter();
    let reading = read_annotations(annotations.map(|(key, value)| (key, Some(value))));
    if reading.errors.is_empty() {
        Ok(reading.asked)
    } else {
        Err(reading.errors)
    }
}

/// What `annotations` ask for without those that have a fault. A value of `None` is one that is not text, which
/// somebody else reports.
pub fn read_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> AnnotationReading {
    let mut set = AnnotationSet::default();
    for (key, value) in annotations {
        if let Some(name) = key.strip_prefix(PREFIX) {
            set.read(name, value.map(str::trim));
        }
    }
    set.finish()
}

/// A list of levels as an annotation has it.
struct LevelList<'a> {
    text: &'a str,
    /// None: it cannot be read.
    levels: Option<Vec<Level>>,
}

impl LevelList<'_> {
    /// Whether it lets in only what is in its levels. One that cannot be read does unless it ends in `*`.
    fn is_boundary(&self) -> bool {
        if let Some(levels) = &self.levels {
            return levels.last().is_none_or(|level| level.key != LevelKey::Any);
        }
        let last = self.text.rsplit(',').next().unwrap_or_default();
        last.split('=').next().unwrap_or_default().trim() != "*"
    }
}

struct AnnotationSet<'a> {
    /// Name and value of each, as they came.
    found: Vec<(&'a str, &'a str)>,
    mode: Option<Mode>,
    keys: Option<LevelList<'a>>,
    weights: Option<LevelList<'a>>,
    min_ready: Vec<(LevelKey, MinReady)>,
    max_overload: Overload,
    named: Option<Arc<str>>,
    /// Whether a policy is named, by what is no name.
    name_unread: bool,
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
            name_unread: false,
            draft: Policy::new(PolicySource::Annotation, Mode::None, Vec::new()),
            errors: Vec::new(),
        }
    }
}

impl<'a> AnnotationSet<'a> {
    /// Reads one annotation; `None` is a value that is not text.
    fn read(&mut self, name: &'a str, value: Option<&'a str>) {
        let unread = || {
            Some(LevelList {
                text: "",
                levels: None,
            })
        };
        match (name, value) {
            ("keys", None) => self.keys = unread(),
            ("weights", None) => self.weights = unread(),
            ("policy", None) => self.name_unread = true,
            (_, None) => {}
            (_, Some(value)) => {
                self.found.push((name, value));
                if let Err(problem) = self.apply(name, value) {
                    self.fail(name, value, problem);
                }
            }
        }
    }

    fn apply(&mut self, name: &str, text: &'a str) -> Result<(), String> {
        match name {
            "mode" => self.mode = Some(values::mode(text)?),
            "keys" => self.keys = Some(self.listed(name, text, values::keys(text))),
            "weights" => self.weights = Some(self.listed(name, text, values::weights(text))),
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
            "subset" => self.draft.subset_max_weight = Some(values::subset(text)?),
            "policy" => {
                let name = values::object_name(text);
                self.name_unread = name.is_err();
                self.named = Some(name?.into());
            }
            "scheduler" => self.draft.scheduler = Some(values::scheduler(text)?),
            _ => {
                let known = ANNOTATIONS.map(|known| known.name).join(", ");
                return Err(format!("unknown annotation; known are {known}"));
            }
        }
        Ok(())
    }

    /// The list in `text`, as far as it can be read.
    fn listed(
        &mut self,
        name: &str,
        text: &'a str,
        read: Result<Vec<Level>, values::ListFault>,
    ) -> LevelList<'a> {
        let levels = read.map_or_else(
            |fault| {
                self.fail(name, text, fault.problem);
                fault.levels
            },
            Some,
        );
        LevelList { text, levels }
    }

    fn fail(&mut self, name: &str, value: &str, problem: String) {
        self.errors.push(PolicyError {
            field: format!("{PREFIX}{name}"),
            value: value.to_owned(),
            problem,
        });
    }

    fn finish(mut self) -> AnnotationReading {
        let (asked, boundary_unread) = self.asked();
        AnnotationReading {
            asked,
            errors: self.errors,
            boundary_unread,
            name_unread: self.name_unread,
        }
    }

    /// What is asked for, and whether it is a boundary that cannot be read.
    fn asked(&mut self) -> (Option<AnnotationRequest>, bool) {
        // The policy that is meant may be a boundary.
        self.name_unread &= !self.forms_boundary();
        if self.name_unread {
            self.fail_beside_name();
            let unread = Policy::new(PolicySource::Annotation, Mode::Hard, Vec::new());
            return (Some(AnnotationRequest::Policy(Box::new(unread))), true);
        }
        if let Some(name) = self.named.take() {
            if !self.forms_boundary() {
                self.fail_beside_name();
                return (Some(AnnotationRequest::Named(name)), false);
            }
            self.fail_found(
                "policy",
                "the named policy says all; remove the other annotations, or this one",
            );
        }
        let meant = self.meant();
        let unread = meant == mode::Meant::Unread;
        let policy = self.policy_of(meant);
        (
            policy.map(|policy| AnnotationRequest::Policy(Box::new(policy))),
            unread,
        )
    }
}
