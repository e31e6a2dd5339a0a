//! Another `spec.trafficDistribution`: computes the hints that Kubernetes would write.
//!
//! Node proxies read the hints and never the field.

use std::collections::BTreeMap;

use topology_core::hints::{self, HintMode};
use topology_core::model::{EndpointSlice, ObjectName};
use topology_core::snapshot::Snapshot;

use super::super::change::{Part, Set};
use super::super::node_zones::zone_of_endpoint;
use super::{Edit, Written, known};
use crate::exit::Failure;

/// The prefix of both annotations for Topology Aware Hints.
pub(crate) const ANNOTATIONS: &str = "service.kubernetes.io/topology-";

/// The older annotation; if present, its value decides.
const OLDER: &str = "service.kubernetes.io/topology-aware-hints";

/// The newer annotation.
const NEWER: &str = "service.kubernetes.io/topology-mode";

impl Edit {
    /// Writes the hints for another `spec.trafficDistribution`, including endpoints that
    /// [`Edit::scale`] added. `written` are the annotations of a Service that begin with
    /// [`ANNOTATIONS`]. The last of several values counts.
    ///
    /// # Errors
    /// The Service does not exist, or one of its annotations overrides the field.
    pub(crate) fn distribute(
        &mut self,
        snapshot: &Snapshot,
        sets: &[Set],
        written: impl Fn(&ObjectName) -> Result<Written, Failure>,
    ) -> Result<(), Failure> {
        let fields = sets
            .iter()
            .filter(|set| set.part == Part::TrafficDistribution);
        let last: BTreeMap<&ObjectName, &str> = fields
            .map(|set| (&set.service, set.value.as_str()))
            .collect();
        for (service, value) in last {
            known(snapshot, service)?;
            let wanted = wanted(service, &written(service)?, value)?;
            let slices = self.slices.entry(service.clone());
            let slices = slices.or_insert_with(|| snapshot.slices(service).to_vec());
            hint(snapshot, wanted, slices);
        }
        Ok(())
    }
}

/// The hint mode of the field and the annotations together.
fn wanted(service: &ObjectName, written: &Written, value: &str) -> Result<HintMode, Failure> {
    let value_of = |wanted: &str| {
        let found = written.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let field = Some(value).filter(|value| !value.is_empty());
    match HintMode::of(value_of(OLDER), value_of(NEWER), field) {
        HintMode::Auto => Err(Failure::input(format_args!(
            "--set: Service {service}: its annotation {} overrides trafficDistribution, so nothing changes; remove the annotation from the input first",
            value_of(OLDER).map_or(NEWER, |_value| OLDER)
        ))),
        wanted @ (HintMode::SameZone | HintMode::SameNode | HintMode::Nothing) => Ok(wanted),
    }
}

/// Replaces the hints. kube-controller-manager copies the zone of an endpoint from its Node.
fn hint(snapshot: &Snapshot, wanted: HintMode, slices: &mut [EndpointSlice]) {
    let mut placed = slices.to_vec();
    for endpoint in placed.iter_mut().flat_map(|slice| &mut slice.endpoints) {
        let zone = zone_of_endpoint(snapshot, endpoint);
        endpoint.zone = (!zone.is_empty()).then_some(zone);
    }
    // Only `HintMode::Auto` needs the CPU of the zones, and only it returns events.
    let _none = hints::write(wanted, None, &mut placed);
    let hinted = placed.into_iter().flat_map(|slice| slice.endpoints);
    let endpoints = slices.iter_mut().flat_map(|slice| &mut slice.endpoints);
    for (endpoint, hinted) in endpoints.zip(hinted) {
        endpoint.hints = hinted.hints;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::cluster;
    use super::super::super::{change, node_zones::NodeZones};
    use super::*;

    /// `t/s` with one endpoint in each of two zones, and the hints it has after the changes.
    fn hinted(
        sets: &[&str],
        scale: Option<&str>,
        written: &Written,
    ) -> Result<Vec<String>, Failure> {
        let mut snapshot = cluster(&[1, 1], &[]);
        let sets: Vec<Set> = sets.iter().map(|text| change::set(text).unwrap()).collect();
        let node_zones = NodeZones::of(&snapshot);
        let mut edit = Edit::default();
        if let Some(scale) = scale {
            edit.scale(&snapshot, &node_zones, &change::scale(scale).unwrap())?;
        }
        edit.distribute(&snapshot, &sets, |_service| Ok(written.clone()))?;
        edit.commit(&mut snapshot);
        let slices = snapshot.slices(&ObjectName::new("t", "s"));
        let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
        let words = endpoints.map(|endpoint| match &endpoint.hints {
            None => "-".to_owned(),
            Some(hints) => [&hints.zones[..], &hints.nodes[..]].concat().join(" "),
        });
        Ok(words.collect())
    }

    const SAME_ZONE: &str = "t/s:trafficDistribution=PreferSameZone";
    const NONE: &str = "t/s:trafficDistribution=";

    #[test]
    fn every_value_gives_the_hints_of_kep_4444_and_kep_3015_and_the_last_one_counts() {
        let of = |sets: &[&str]| hinted(sets, None, &Vec::new()).unwrap();
        assert_eq!(of(&[SAME_ZONE]), ["z0", "z1"]);
        assert_eq!(of(&["t/s:trafficDistribution=PreferClose"]), ["z0", "z1"]);
        let same_node = "t/s:trafficDistribution=PreferSameNode";
        assert_eq!(of(&[same_node]), ["z0 n00", "z1 n10"]);
        assert_eq!(of(&[SAME_ZONE, NONE]), ["-", "-"]);
    }

    #[test]
    fn endpoints_that_were_added_get_hints_too() {
        let hints = hinted(&[SAME_ZONE], Some("t/s=z1:2"), &Vec::new()).unwrap();
        assert_eq!(hints, ["z0", "z1", "z1"]);
    }

    #[test]
    fn an_annotation_that_overrides_the_field_is_named() {
        let auto = |key: &str| vec![(key.to_owned(), "Auto".to_owned())];
        for key in [OLDER, NEWER] {
            let refused = hinted(&[SAME_ZONE], None, &auto(key)).unwrap_err();
            assert!(refused.message().contains(key), "{}", refused.message());
        }
        let off = vec![(NEWER.to_owned(), "Disabled".to_owned())];
        assert_eq!(hinted(&[SAME_ZONE], None, &off).unwrap(), ["z0", "z1"]);
    }
}
