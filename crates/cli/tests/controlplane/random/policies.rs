//! Random policies and drains.

use serde_json::{Value, json};

use super::{Dice, NAMESPACE, ZONES};

/// Adds at most one object of each kind.
pub(super) fn policies(dice: &mut Dice, objects: &mut Vec<(String, Value)>) {
    const OURS: &str = "/apis/topology.ipvs-topo.io/v1alpha1";
    let object = |kind: &str, metadata: Value, spec: Value| json!({"apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
    let levels = |near: usize| {
        json!([
            {"name": "zone", "key": "topology.kubernetes.io/zone", "weight": near},
            {"name": "any", "any": true, "weight": 100 - near},
        ])
    };
    if dice.is(40) {
        let spec = json!({"mode": "Weighted", "levels": levels(50 + dice.roll(50)), "serviceSelector": {"matchLabels": {"tier": "back"}}});
        let metadata = json!({"name": "named", "namespace": NAMESPACE});
        let path = format!("{OURS}/namespaces/{NAMESPACE}/topologypolicies");
        objects.push((path, object("TopologyPolicy", metadata, spec)));
    }
    if dice.is(40) {
        let team = dice.of(&["x", "unused"]);
        let mut spec = json!({"mode": "Weighted", "priority": dice.roll(1000), "levels": levels(50 + dice.roll(50))});
        if dice.is(50) {
            let selector = json!({"matchLabels": {"team": team}});
            spec.as_object_mut()
                .unwrap()
                .insert("namespaceSelector".to_owned(), selector);
        }
        let path = format!("{OURS}/clustertopologypolicies");
        objects.push((
            path,
            object("ClusterTopologyPolicy", json!({"name": "default"}), spec),
        ));
    }
    if dice.is(20) {
        let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(2);
        let domain = json!({"key": "topology.kubernetes.io/zone", "values": [dice.of(&ZONES)]});
        let spec = json!({"match": domain, "expiresAt": format!("{end:.0}"), "rampSeconds": 0});
        objects.push((
            format!("{OURS}/topologydrains"),
            object("TopologyDrain", json!({"name": "drain"}), spec),
        ));
    }
}
