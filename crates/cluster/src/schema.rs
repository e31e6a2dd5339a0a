//! One description of each custom resource, from which everything about it follows: what the reader accepts, the
//! CRD that an API server serves, and the tables in the documentation.
//!
//! ```text
//!                          ┌─> complete ─> check      (the reader: defaults, then faults)
//!  policy, drain ─> property ─> crd ─> write          (`manifests/crds/*.yaml`)
//!  (what there is)  rule     └─> table                (`docs/topology.md`)
//! ```
//!
//! `cargo xtask codegen` writes what [`generated()`] returns.

mod check;
mod complete;
mod crd;
mod drain;
mod policy;
mod property;
mod rule;
mod selector;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use check::check;
pub(crate) use complete::complete;
pub(crate) use drain::{DRAIN, MAX_AHEAD_HOURS};
pub(crate) use policy::{CLUSTER_POLICY, NAMESPACE_POLICY};
pub(crate) use property::Resource;

/// The API group of every resource of ours.
pub(crate) const GROUP: &str = "topology.ipvs-topo.io";
/// The only version there is.
pub(crate) const VERSION: &str = "v1alpha1";

/// Every resource, in the order in which the documentation tells of them.
const ALL: [&Resource; 3] = [&CLUSTER_POLICY, &NAMESPACE_POLICY, &DRAIN];

/// A text that follows from the descriptions, and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The place.
    pub place: Place,
    /// What is to be there.
    pub text: String,
}

/// Where a generated text belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// It is the whole file of this name in `manifests/crds`.
    Manifest(String),
    /// It stands in a document between the markers of this name.
    Section(String),
}

/// Everything that follows from the descriptions and is kept in files.
pub fn generated() -> Vec<Generated> {
    let manifests = ALL.iter().map(|resource| Generated {
        place: Place::Manifest(format!("{}.yaml", resource.plural)),
        text: crd::of(resource),
    });
    let sections = table::all().into_iter().map(|(name, text)| Generated {
        place: Place::Section(name.to_owned()),
        text,
    });
    manifests.chain(sections).collect()
}
