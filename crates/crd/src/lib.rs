//! Describes each custom resource once. The reader's checks, the CRDs and the tables of the
//! documentation follow from the description.
//!
//! ```text
//!                          ┌─> complete ─> check      (the reader: defaults, then faults)
//!  policy, drain ─> property ─> definition ─> write   (`manifests/crds/*.yaml`)
//!  maps, locator,   rule     └─> table                (`docs/policies.md`)
//!  agent
//!  topology_core's annotations ─> admission ─> write  (`manifests/admission/*.yaml`)
//! ```
//!
//! `cargo xtask codegen` writes what [`generated()`] returns.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod admission;
mod agent;
mod check;
mod complete;
mod definition;
mod drain;
mod group;
mod map;
mod object_status;
mod pod_locator;
mod pod_map;
mod policy;
mod property;
mod rule;
mod selector;
mod status;
mod table;
#[cfg(test)]
mod tests;
pub mod topology_agent;
mod write;

use agent::AGENT;
pub use agent::{
    MAX_FALLBACKS, MAX_REPORT_BYTES, MAX_REPORTED, MAX_WARNING_BYTES, MAX_WARNINGS,
    MIN_REPORT_BYTES,
};
pub use check::check;
pub use complete::{complete, prune};
pub use drain::{DRAIN, MAX_AHEAD_HOURS};
pub use group::{GROUP, VERSION};
pub use map::{
    MAP, MAX_KEYS, MAX_NODE_ADDRESSES, MAX_NODE_CPU_MILLI, MAX_NODE_POD_CIDRS, NODES_PER_SHARD,
    REQUIRED_KEYS, map_node_fault,
};
pub use object_status::{
    DrainPhase, DrainStatus, LastTransition, MapNode, MapSpec, PodLocatorSpec, PodMapSpec,
    PolicyStatus,
};
use pod_locator::LOCATOR;
pub use pod_locator::MAX_LOCATOR_ADDRESSES;
pub use pod_map::{MAX_POD_ADDRESSES, POD_MAP};
pub use policy::{CLUSTER_POLICY, NAMESPACE_POLICY};
pub use property::{Object, Resource};

/// Every resource, in the order of the documentation.
const ALL: [&Resource; 7] = [
    &CLUSTER_POLICY,
    &NAMESPACE_POLICY,
    &DRAIN,
    &MAP,
    &POD_MAP,
    &LOCATOR,
    &AGENT,
];

/// A generated text and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    pub place: OutputPath,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputPath {
    /// The path of a file in `manifests`.
    Manifest(String),
    /// The path of a file in `docs`.
    Document(String),
}

/// Every generated text.
pub fn generated() -> Vec<Generated> {
    let definitions = ALL.iter().map(|resource| {
        (
            format!("{}.yaml", resource.plural),
            definition::of(resource),
        )
    });
    let policies = admission::all().into_iter();
    let policies = policies.map(|(name, text)| (name.to_owned(), text));
    let mut found = folder("crds", definitions.collect());
    found.extend(folder("admission", policies.collect()));
    found.extend(
        admission::of_components()
            .into_iter()
            .map(|(name, text)| Generated {
                place: OutputPath::Manifest(format!("components/{name}/policy.yaml")),
                text,
            }),
    );
    found.push(Generated {
        place: OutputPath::Document(table::PAGE.to_owned()),
        text: table::page(),
    });
    found
}

/// The files of a folder, and its `kustomization.yaml` for `kubectl apply -k`.
fn folder(name: &str, files: Vec<(String, String)>) -> Vec<Generated> {
    let listed: Vec<String> = files
        .iter()
        .map(|(file, _)| format!("- {file}\n"))
        .collect();
    let kustomization = format!(
        "# Written by `cargo xtask codegen`; do not edit.\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{}",
        listed.concat()
    );
    let manifest = |(file, text): (String, String)| Generated {
        place: OutputPath::Manifest(format!("{name}/{file}")),
        text,
    };
    let mut found: Vec<Generated> = files.into_iter().map(manifest).collect();
    found.push(manifest(("kustomization.yaml".to_owned(), kustomization)));
    found
}
