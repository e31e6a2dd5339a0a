//! The annotations `topology.ipvs-topo.io/...` of a Service.
//!
//! A fault costs the annotation that has it and no other, except that a boundary is never opened by a mistake: where
//! the levels of a hard policy, or the name of the policy, cannot be read, the reading stands for a boundary that holds nothing
//! ([`AnnotationReading::boundary_unread`]).

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
