//! Converts `TopologyPolicy` and `ClusterTopologyPolicy`.

use topology_core::model::{Enforcement, OwnerLimits, TopologyPolicy};
use topology_core::policy::{
    Avoid, AvoidMode, Demand, DemandKind, Level, LevelKey, MinReady, Mode, Policy, PolicySource,
};

use super::custom::{enum_value, key, names, number, selector, sound};
use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crate::object::{Kind, ObjectKey};
use crd::{CLUSTER_POLICY, NAMESPACE_POLICY};
use object_tree::Field;

/// Converts a policy of either kind. Returns `None` if it is not valid.
pub(crate) fn convert(
    root: &Field<'_>,
    key: &ObjectKey,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<TopologyPolicy> {
    let namespaced = key.kind == Kind::TopologyPolicy;
    let resource = if namespaced {
        &NAMESPACE_POLICY
    } else {
        &CLUSTER_POLICY
    };
    let whole = sound(root, resource, report)?;
    let whole = Field::root(&whole);
    let spec = whole.get("spec");
    let enforcement = enum_value(&spec.get("enforcement"), report)?;
    let source = match (namespaced, enforcement) {
        (true, _) => PolicySource::NamespacePolicy,
        (false, Enforcement::Override) => PolicySource::ClusterOverride,
        (false, Enforcement::Default) => PolicySource::ClusterDefault,
    };
    Some(TopologyPolicy {
        namespace: namespaced.then(|| key.name.namespace.clone()),
        name: key.name.name.clone(),
        created: meta::created(root, report),
        generation: meta::generation(root, report),
        priority: number(&spec.get("priority"), report)?,
        enforcement,
        namespace_selector: selector(&spec.get("namespaceSelector"), interner, report)?,
        service_selector: selector(&spec.get("serviceSelector"), interner, report)?,
        node_selector: selector(&spec.get("nodeSelector"), interner, report)?,
        port_names: names(&spec.get("portNames"), interner, report),
        policy: policy(&spec, source, interner, report)?,
        owner_limits: owner_limits(&spec.get("ownerLimits"), report),
    })
}

fn policy(
    spec: &Field<'_>,
    source: PolicySource,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Policy> {
    let mode = enum_value(&spec.get("mode"), report)?;
    let policy = Policy::new(source, mode, levels(&spec.get("levels"), mode, report)?);
    let (spill, guard) = (spec.get("spill"), spec.get("guard"));
    let max_overload = number(&guard.get("maxOverloadPercent"), report);
    Some(Policy {
        weighting: enum_value(&spec.get("weighting"), report)?,
        empty_tier: enum_value(&spec.get("emptyTier"), report)?,
        overprovision: number(&spill.get("overprovisionPercent"), report),
        recovery_hold: number(&spill.get("recoveryHoldSeconds"), report)?,
        max_overload: max_overload.or(policy.max_overload),
        demand: demand(&guard, interner, report)?,
        residual: enum_value(&guard.get("residual"), report)?,
        min_endpoints: number(&guard.get("minEndpoints"), report)?,
        panic_percent: number(&guard.get("panicPercent"), report)?,
        avoid: avoid(&spec.get("avoid"), report)?,
        on_no_match: enum_value(&spec.get("onNoMatch"), report)?,
        subset_max_weight: number(&spec.get("subset").get("maxWeight"), report),
        ..policy
    })
}

/// If the mode is not `Weighted`, the first level has weight 100 and the others have weight 0.
fn levels(field: &Field<'_>, mode: Mode, report: &mut Report) -> Option<Vec<Level>> {
    let mut levels = Vec::new();
    for item in field.items(report) {
        let any = item.get("any").boolean(report)?;
        let key = if any {
            LevelKey::Any
        } else {
            key(&item.get("key"), report)?
        };
        let first = if levels.is_empty() { 100 } else { 0 };
        levels.push(Level {
            key,
            weight: if mode == Mode::Weighted {
                number(&item.get("weight"), report)?
            } else {
                first
            },
            min_ready: MinReady {
                count: number(&item.get("minReadyEndpoints"), report)?,
                percent: number(&item.get("minReadyPercent"), report)?,
            },
        });
    }
    Some(levels)
}

fn demand(guard: &Field<'_>, interner: &mut Interner, report: &mut Report) -> Option<Demand> {
    match enum_value(&guard.get("demand"), report)? {
        DemandKind::NodeCount => return Some(Demand::NodeCount),
        DemandKind::AllocatableCpu => return Some(Demand::AllocatableCpu),
        DemandKind::Static => {}
    }
    let listed = guard.get("staticDemand");
    let mut zones = Vec::new();
    for zone in listed.keys() {
        let percent = number(&listed.entry(zone), report)?;
        zones.push((interner.text(zone), percent));
    }
    zones.sort();
    Some(Demand::Static(zones))
}

fn avoid(field: &Field<'_>, report: &mut Report) -> Option<Vec<Avoid>> {
    let mut avoid = Vec::new();
    for item in field.items(report) {
        avoid.push(Avoid {
            key: key(&item.get("key"), report)?,
            soft: enum_value::<AvoidMode>(&item.get("mode"), report)? == AvoidMode::Soft,
        });
    }
    Some(avoid)
}

fn owner_limits(field: &Field<'_>, report: &mut Report) -> Option<OwnerLimits> {
    if !field.is_present() {
        return None;
    }
    let mut allowed_modes = Vec::new();
    let listed = field.get("allowedModes");
    for item in listed.items(report) {
        allowed_modes.extend(enum_value::<Mode>(&item, report));
    }
    Some(OwnerLimits {
        allowed_modes,
        min_max_overload: number(&field.get("minMaxOverloadPercent"), report),
    })
}
