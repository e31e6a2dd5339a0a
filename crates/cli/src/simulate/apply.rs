//! Changes of the cluster in memory: computed first, then applied.

pub(crate) mod distribution;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use cluster::source::{Loaded, refused_label};
use topology_core::model::{
    Drain, Endpoint, EndpointSlice, Family, Faults, Node, ObjectName, Service, TopologyPolicy,
};
use topology_core::policy::{
    AnnotationChoice, AnnotationReading, LevelKey, ZONE, beside_topology_keys,
};
use topology_core::snapshot::Snapshot;

use super::change::{DrainOf, Part, Scale, Set};
use super::node_zones::{NodeZones, zone_of_endpoint};
use crate::exit::Failure;

/// Values that a message lists if one is misspelled.
const NAMED: usize = 8;

/// The annotations of a Service, as written.
pub(crate) type Written = Vec<(String, String)>;

/// The new state of the changed objects.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    services: Vec<Service>,
    slices: BTreeMap<ObjectName, Vec<EndpointSlice>>,
    policies: Vec<TopologyPolicy>,
    drains: Vec<Drain>,
}

impl Edit {
    pub(crate) fn commit(self, snapshot: &mut Snapshot) {
        for service in self.services {
            snapshot.set_service(service);
        }
        for slice in self.slices.into_values().flatten() {
            snapshot.set_slice(slice);
        }
        for policy in self.policies {
            snapshot.set_policy(policy);
        }
        for drain in self.drains {
            snapshot.set_drain(drain);
        }
    }

    /// Drains every Node with one of the values.
    ///
    /// # Errors
    /// The key is not a label, or no Node has one of the values.
    pub(crate) fn drain(&mut self, snapshot: &Snapshot, change: &DrainOf) -> Result<(), Failure> {
        let wrong = |why: String| Failure::input(format_args!("--drain: {why}"));
        let key = LevelKey::parse(&change.key).map_err(wrong)?;
        for value in &change.values {
            let there = match &key {
                LevelKey::Any => {
                    return Err(wrong(
                        "* matches everything; use a label, such as zone=b".to_owned(),
                    ));
                }
                LevelKey::Node => snapshot.node(value).is_some(),
                LevelKey::Label(label) => snapshot
                    .nodes()
                    .any(|node| node.labels.get(label) == Some(value)),
            };
            if !there {
                return Err(wrong(format!(
                    "no Node has {}={value}; {}",
                    change.key,
                    choices(snapshot, &key)
                )));
            }
        }
        let name = format!("--drain {}={}", change.key, change.values.join(","));
        self.drains
            .push(Drain::of(&name, key, change.values.clone()));
        Ok(())
    }

    /// Adds the policies and drains of another input.
    ///
    /// # Errors
    /// The input has none; the message has the warnings about it.
    pub(crate) fn policies(&mut self, from: &Loaded, shown: &str) -> Result<(), Failure> {
        let snapshot = &from.snapshot;
        self.policies.extend(snapshot.policies().cloned());
        self.drains.extend(snapshot.drains().cloned());
        if snapshot.policies().next().is_some() || snapshot.drains().next().is_some() {
            return Ok(());
        }
        let mut words = format!(
            "--policy {shown}: no usable TopologyPolicy, ClusterTopologyPolicy or TopologyDrain in the file"
        );
        for warning in &from.warnings {
            words.push_str("; ");
            words.push_str(&warning.to_string());
        }
        Err(Failure::input(words))
    }

    /// Sets annotations of Services. `written` are their present annotations, and `allowed` are the
    /// labels that annotations may use; `None` = any.
    ///
    /// # Errors
    /// The Service does not exist, or the annotations are not a policy.
    pub(crate) fn set(
        &mut self,
        snapshot: &Snapshot,
        sets: &[Set],
        allowed: Option<&BTreeSet<Arc<str>>>,
        written: impl Fn(&ObjectName) -> Result<Written, Failure>,
    ) -> Result<(), Failure> {
        let mut all: BTreeMap<&ObjectName, Written> = BTreeMap::new();
        for change in sets {
            let Part::Annotation(annotation) = &change.part else {
                continue;
            };
            known(snapshot, &change.service)?;
            let annotations = match all.entry(&change.service) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(written(&change.service)?),
            };
            annotations.retain(|(name, _)| name != annotation);
            if !change.value.is_empty() {
                annotations.push((annotation.clone(), change.value.clone()));
            }
        }
        for (name, annotations) in all {
            let service = known(snapshot, name)?;
            let keys = service.topology_keys.as_deref();
            let pairs = annotations
                .iter()
                .map(|(name, value)| (name.as_str(), Some(value.as_str())));
            let AnnotationReading { asked, errors, .. } = AnnotationReading::beside(pairs, keys);
            if !errors.is_empty() {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                return Err(Failure::input(format_args!(
                    "--set: Service {name}: {}",
                    errors.join("; ")
                )));
            }
            if let (Some(AnnotationChoice::Policy(policy)), Some(allowed)) = (&asked, allowed)
                && let Some(label) = refused_label(policy, allowed)
            {
                return Err(Failure::input(format_args!(
                    "--set: Service {name}: annotations may not use the label {label}; name it in --annotation-label-keys"
                )));
            }
            let (policy, named_policy) = match beside_topology_keys(asked, keys.cloned()) {
                None => (None, None),
                Some(AnnotationChoice::Policy(policy)) => (Some(policy.into()), None),
                Some(AnnotationChoice::Named(name)) => (None, Some(name)),
            };
            self.services.push(Service {
                policy,
                named_policy,
                faults: Faults::None,
                ..service.clone()
            });
        }
        Ok(())
    }

    /// Sets the number of ready endpoints of a Service in a zone.
    ///
    /// # Errors
    /// The Service does not exist, it has no slice, or no Node is in that zone.
    pub(crate) fn scale(
        &mut self,
        snapshot: &Snapshot,
        node_zones: &NodeZones,
        change: &Scale,
    ) -> Result<(), Failure> {
        known(snapshot, &change.service)?;
        let nodes = nodes_in(snapshot, node_zones, &change.zone)?;
        let slices = self.slices.entry(change.service.clone());
        let slices = slices.or_insert_with(|| snapshot.slices(&change.service).to_vec());
        if slices.is_empty() {
            return Err(Failure::input(format_args!(
                "--scale: Service {} has no EndpointSlice to scale; add one to the input",
                change.service
            )));
        }
        for family in [Family::V4, Family::V6] {
            scale_family(snapshot, slices, family, change, &nodes);
        }
        Ok(())
    }
}

fn scale_family(
    snapshot: &Snapshot,
    slices: &mut [EndpointSlice],
    family: Family,
    change: &Scale,
    nodes: &[Arc<str>],
) {
    let counts =
        |endpoint: &Endpoint| endpoint.ready && zone_of_endpoint(snapshot, endpoint) == change.zone;
    let mut there = 0;
    for slice in slices.iter_mut().filter(|slice| slice.family == family) {
        slice.endpoints.retain(|endpoint| {
            there += usize::from(counts(endpoint));
            !counts(endpoint) || there <= change.count
        });
    }
    let addresses = inventions(family, slices).take(change.count.saturating_sub(there));
    let Some(last) = slices.iter_mut().rfind(|slice| slice.family == family) else {
        return;
    };
    for (address, node) in addresses.zip(nodes.iter().cycle()) {
        last.endpoints.push(Endpoint {
            address,
            node: Some(node.clone()),
            zone: Some(change.zone.clone()),
            ready: true,
            serving: true,
            terminating: false,
            hints: None,
        });
    }
}

/// Addresses of the benchmark ranges (RFC 2544, RFC 5180), except those in `slices`.
fn inventions(family: Family, slices: &[EndpointSlice]) -> impl Iterator<Item = IpAddr> + use<> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let taken: BTreeSet<IpAddr> = endpoints.map(|endpoint| endpoint.address).collect();
    let address = move |number: u32| match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::from_bits(
            Ipv4Addr::new(198, 18, 0, 0).to_bits() + number,
        )),
        Family::V6 => {
            let base = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0).to_bits();
            IpAddr::V6(Ipv6Addr::from_bits(base + u128::from(number)))
        }
    };
    (1..0x1_ffff)
        .map(address)
        .filter(move |address| !taken.contains(address))
}

fn nodes_in(
    snapshot: &Snapshot,
    node_zones: &NodeZones,
    zone: &str,
) -> Result<Vec<Arc<str>>, Failure> {
    let here = |place: &&super::node_zones::NodeZone| {
        node_zones
            .zones
            .get(place.zone)
            .is_some_and(|name| **name == *zone)
    };
    let nodes: Vec<Arc<str>> = node_zones
        .nodes
        .iter()
        .filter(here)
        .map(|place| place.name.clone())
        .collect();
    if nodes.is_empty() {
        return Err(Failure::input(format_args!(
            "--scale: no Node is in zone {zone}; {}",
            choices(snapshot, &LevelKey::Label(ZONE.into()))
        )));
    }
    Ok(nodes)
}

/// `the Nodes have a, b, c`: the valid values.
fn choices(snapshot: &Snapshot, key: &LevelKey) -> String {
    let value = |node: &Node| match key {
        LevelKey::Label(label) => node.labels.get(label).cloned(),
        LevelKey::Node | LevelKey::Any => Some(node.name.clone()),
    };
    let values: BTreeSet<Arc<str>> = snapshot.nodes().filter_map(value).collect();
    let named: Vec<&str> = values.iter().map(|value| &**value).take(NAMED).collect();
    match (values.len(), values.len().saturating_sub(NAMED)) {
        (0, _) => format!("no Node in the input has the label {key}"),
        (_, 0) => format!("the Nodes have {}", named.join(", ")),
        (_, more) => format!("the Nodes have {} and {more} more", named.join(", ")),
    }
}

fn known<'a>(snapshot: &'a Snapshot, name: &ObjectName) -> Result<&'a Service, Failure> {
    snapshot
        .service(name)
        .ok_or_else(|| Failure::input(format_args!("the input has no Service {name}")))
}
