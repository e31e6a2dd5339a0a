//! Parses the annotations `topology.ipvs-topo.io/...` of a Service.
//!
//! An annotation that is not valid is ignored, and the others count. There is one exception, so that a mistake never
//! removes a boundary: if the levels of a hard policy, or the name of the policy, cannot be parsed, the result is a
//! boundary that contains no endpoint ([`AnnotationReading::boundary_unread`]).

mod check;
mod describe;
mod mode;
mod set;
mod values;

pub use describe::{ANNOTATIONS, Annotation, ValueKind};
pub use set::PREFIX;

use std::sync::Arc;

use super::{Mode, Policy, PolicyError, PolicySource};
use set::AnnotationSet;

/// The policy that annotations choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationChoice {
    /// A policy in the annotations themselves.
    Policy(Box<Policy>),
    /// The `TopologyPolicy` of this name in the Service's namespace.
    Named(Arc<str>),
}

/// Combines annotations and `spec.topologyKeys` of one Service: annotations with levels, or a named policy, win; those
/// without levels add to the keys.
pub fn beside_topology_keys(
    annotated: Option<AnnotationChoice>,
    keys: Option<Policy>,
) -> Option<AnnotationChoice> {
    let Some(keys) = keys else {
        return annotated;
    };
    let policy = match annotated {
        None => keys,
        Some(AnnotationChoice::Policy(added)) if added.adds => Policy {
            avoid: added.avoid,
            on_no_match: added.on_no_match,
            scheduler: added.scheduler,
            ..keys
        },
        Some(asked) => return Some(asked),
    };
    Some(AnnotationChoice::Policy(Box::new(policy)))
}

/// The result of parsing annotations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationReading {
    /// The policy from the valid annotations; `None` if they say nothing.
    pub asked: Option<AnnotationChoice>,
    /// All errors, not only the first one.
    pub errors: Vec<PolicyError>,
    /// Whether the levels of a hard policy, or the name of the policy, cannot be parsed. `asked` then is a boundary
    /// that contains no endpoint.
    pub boundary_unread: bool,
    /// Whether the name of the policy is what cannot be parsed.
    pub name_unread: bool,
}

/// Parses `annotations`, which must all be valid; `None` if none of them is ours.
///
/// # Errors
///
/// All errors, not only the first one.
pub fn from_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Option<AnnotationChoice>, Vec<PolicyError>> {
    let annotations = annotations.into_iter();
    let reading = read_annotations(annotations.map(|(key, value)| (key, Some(value))));
    if reading.errors.is_empty() {
        Ok(reading.asked)
    } else {
        Err(reading.errors)
    }
}

/// Parses `annotations` and ignores those that are not valid. A value of `None` is not a string; the caller reports
/// that. For a Service with `topologyKeys` see [`AnnotationReading::beside`].
pub fn read_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> AnnotationReading {
    AnnotationReading::beside(annotations, None)
}

impl AnnotationReading {
    /// Parses `annotations` as [`read_annotations`] does, of a Service whose `topologyKeys` are the policy `keys`: a
    /// setting without levels is checked together with the levels that it adds to.
    pub fn beside<'a>(
        annotations: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
        keys: Option<&Policy>,
    ) -> Self {
        let mut set = AnnotationSet {
            adds_to_boundary: keys.is_some_and(Policy::is_bounded),
            ..AnnotationSet::default()
        };
        for (key, value) in annotations {
            if let Some(name) = key.strip_prefix(PREFIX) {
                set.read(name, value.map(str::trim));
            }
        }
        set.finish()
    }
}

impl AnnotationSet<'_> {
    fn finish(mut self) -> AnnotationReading {
        let (asked, boundary_unread) = self.asked();
        AnnotationReading {
            asked,
            errors: self.errors,
            boundary_unread,
            name_unread: self.name_unread,
        }
    }

    /// The policy, and whether it is a boundary that cannot be parsed.
    fn asked(&mut self) -> (Option<AnnotationChoice>, bool) {
        // The named policy may be a boundary.
        self.name_unread &= !self.forms_boundary();
        if self.name_unread {
            self.fail_beside_name();
            let unread = Policy::new(PolicySource::Annotation, Mode::Hard, Vec::new());
            return (Some(AnnotationChoice::Policy(Box::new(unread))), true);
        }
        if let Some(name) = self.named.take() {
            if !self.forms_boundary() {
                self.fail_beside_name();
                return (Some(AnnotationChoice::Named(name)), false);
            }
            self.fail_found(
                "policy",
                "the named policy decides alone; remove the other annotations, or this one",
            );
        }
        let meant = self.level_choice();
        let unread = meant == mode::LevelChoice::Unread;
        let policy = self.policy_of(meant);
        (
            policy.map(|policy| AnnotationChoice::Policy(Box::new(policy))),
            unread,
        )
    }
}
