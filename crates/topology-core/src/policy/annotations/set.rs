//! Collects the annotations of one Service and parses each value.

use std::sync::Arc;

use super::describe::ANNOTATIONS;
use super::values;
use crate::policy::{Level, LevelKey, MinReady, Mode, Policy, PolicyError, PolicySource};

/// The prefix of our annotations.
pub const PREFIX: &str = "topology.ipvs-topo.io/";

/// The most characters of a value that an error shows. A value may have 256 KiB, and several errors.
const MOST_SHOWN: usize = 256;

/// A list of levels in an annotation.
pub(super) struct LevelList<'a> {
    text: &'a str,
    /// `None` if the list cannot be parsed.
    pub(super) levels: Option<Vec<Level>>,
}

impl LevelList<'_> {
    /// Whether only endpoints in its levels may be used. A list that cannot be parsed counts as a boundary unless it
    /// ends in `*`.
    pub(super) fn is_boundary(&self) -> bool {
        if let Some(levels) = &self.levels {
            return levels.last().is_none_or(|level| level.key != LevelKey::Any);
        }
        let last = self.text.rsplit(',').next().unwrap_or_default();
        last.split('=').next().unwrap_or_default().trim() != "*"
    }
}

/// The topology annotations of one Service, with what was parsed so far.
pub(super) struct AnnotationSet<'a> {
    /// Names and values, in the order of the Service.
    pub(super) found: Vec<(&'a str, &'a str)>,
    pub(super) mode: Option<Mode>,
    pub(super) keys: Option<LevelList<'a>>,
    pub(super) weights: Option<LevelList<'a>>,
    pub(super) min_ready: Vec<(LevelKey, MinReady)>,
    pub(super) max_overload: Overload,
    pub(super) named: Option<Arc<str>>,
    /// Whether the annotation `policy` has a value that is not a name.
    pub(super) name_unread: bool,
    /// Whether the Service has `topologyKeys` that are a boundary. Annotations without levels add to them.
    pub(super) adds_to_boundary: bool,
    /// The options so far; mode and levels are set last.
    pub(super) draft: Policy,
    pub(super) errors: Vec<PolicyError>,
}

/// The value of `max-overload`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Overload {
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
            adds_to_boundary: false,
            draft: Policy::new(PolicySource::Annotation, Mode::None, Vec::new()),
            errors: Vec::new(),
        }
    }
}

impl<'a> AnnotationSet<'a> {
    /// Parses one annotation; `None` is a value that is not a string.
    pub(super) fn read(&mut self, name: &'a str, value: Option<&'a str>) {
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

    /// Parses a list, as far as possible.
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

    pub(super) fn fail(&mut self, name: &str, value: &str, problem: String) {
        self.errors.push(PolicyError {
            field: format!("{PREFIX}{name}"),
            value: shortened(value),
            problem,
        });
    }
}

/// At most the first [`MOST_SHOWN`] characters.
fn shortened(value: &str) -> String {
    let end = value.char_indices().nth(MOST_SHOWN);
    let start = end.and_then(|(end, _)| value.get(..end));
    start.map_or_else(|| value.to_owned(), |start| format!("{start}…"))
}
