//! Copies one Service and everything that its explanation needs. The agent's loop copies it between two passes, and
//! another thread computes the explanation.

use std::collections::{BTreeMap, BTreeSet};

use cluster::warning::Warning;
use topology_core::model::ObjectName;
use topology_core::resolve::{Resolution, ResolvedServer, Viewpoint, resolve_for_clients};
use topology_core::snapshot::Snapshot;

use super::stages;
use super::what_if::what_if;
use crate::describe;
use crate::scope::Scope;
use crate::view::{ExplainView, PlaceView, WarningView};

/// A Service as it was decided at one moment, with the part of the cluster that the decision depends on.
#[derive(Debug)]
pub struct ExplainInput {
    snapshot: Snapshot,
    me: Viewpoint,
    resolution: Resolution,
    warnings: Vec<WarningView>,
}

impl ExplainInput {
    /// Copies `service` from `from`; `None` if it does not exist.
    pub fn of(
        from: &Snapshot,
        warnings: &mut dyn Iterator<Item = &Warning>,
        me: &Viewpoint,
        service: &ObjectName,
    ) -> Option<Self> {
        let scope = Scope::Only(BTreeSet::from([service.clone()]));
        let mut warnings = scope.views(from, warnings);
        warnings.extend(describe::unknown_node(from, &me.node));
        Some(Self {
            snapshot: part(from, service)?,
            me: me.clone(),
            resolution: resolve_for_clients(from, me, service),
            warnings,
        })
    }

    /// Explains how each virtual server, or each answer of DNS for a headless Service, came about, and what would change
    /// it.
    ///
    /// # Errors
    /// The Service has no virtual server; the warnings say why.
    pub fn explain(self) -> Result<Vec<ExplainView>, Vec<WarningView>> {
        let Self {
            mut snapshot,
            me,
            resolution,
            mut warnings,
        } = self;
        warnings.extend(resolution.findings.iter().map(describe::finding));
        if resolution.servers.is_empty() {
            return Err(warnings);
        }
        let view = |resolved: &ResolvedServer| ExplainView {
            node: Some(place(&snapshot, &me, resolved)),
            what_if: Some(what_if(&mut snapshot, &me, resolved)),
            warnings: warnings.clone(),
            ..stages::explain(resolved)
        };
        Ok(resolution.servers.iter().map(view).collect())
    }
}

/// Copies the Service with its slices and namespace, and all Nodes, policies and drains.
fn part(from: &Snapshot, service: &ObjectName) -> Option<Snapshot> {
    let mut part = Snapshot::with_mark_mask(from.mark_mask());
    // A mark that is allocated again can be another one, and then another virtual server.
    let marks = from.firewall_marks();
    let marks = marks.filter(|(port, _)| port.service == *service);
    part.restore_firewall_marks(marks.map(|(port, mark)| (port.clone(), mark)));
    part.set_service(from.service(service)?.clone());
    for node in from.nodes() {
        part.set_node(node.clone());
    }
    part.set_service_cidrs(from.service_cidrs().to_vec());
    for slice in from.slices(service) {
        part.set_slice(slice.clone());
    }
    for policy in from.policies() {
        part.set_policy(policy.clone());
    }
    for drain in from.drains() {
        part.set_drain(drain.clone());
    }
    if let Some(labels) = from.namespace(&service.namespace) {
        part.set_namespace(service.namespace.clone(), labels.clone());
    }
    Some(part)
}

/// The Node that the decision is for.
fn place(snapshot: &Snapshot, me: &Viewpoint, resolved: &ResolvedServer) -> PlaceView {
    let node = snapshot.node(&me.node);
    let labels: BTreeMap<String, String> = node
        .iter()
        .flat_map(|node| node.labels.iter())
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let levels = resolved.decision.levels.iter();
    let asked = levels.filter_map(|level| Some((&level.key, level.key.label()?)));
    let missing = asked.filter(|(_key, label)| !labels.contains_key(&***label));
    PlaceView {
        name: me.node.to_string(),
        known: node.is_some(),
        missing: missing.map(|(key, _label)| key.to_string()).collect(),
        labels,
    }
}

/// Says why the kernel has no virtual server for a Service.
pub fn nothing(service: &ObjectName, why: &[WarningView]) -> String {
    let why = why.iter().map(|warning| format!("; {}", warning.text));
    format!(
        "Service {service} has no virtual server{}",
        why.collect::<String>()
    )
}
