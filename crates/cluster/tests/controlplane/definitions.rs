//! Definitions of our kinds that belong to another version of this project.

mod alone {
    //! All tests share the definitions.

    use cluster::api::Phase;
    use cluster::event::Completeness;
    use serde_json::json;

    use crate::follower::Follower;
    use crate::following::create;
    use crate::kubectl::{Changed, Namespace, eventually, installed, kubectl_with, ok};

    const DRAINS: &str = "topologydrains.topology.ipvs-topo.io";
    const POLICIES: &str = "clustertopologypolicies.topology.ipvs-topo.io";

    fn drain() -> String {
        let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
        json!({
            "apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": "TopologyDrain", "metadata": {"name": "kept"},
            "spec": {"match": {"key": "topology.kubernetes.io/zone", "values": ["b"]}, "expiresAt": format!("{end:.0}")},
        })
        .to_string()
    }

    fn drains(follower: &Follower) -> usize {
        follower.index.snapshot().drains().count()
    }

    #[test]
    fn a_kind_in_another_version_is_reported_and_its_objects_are_kept() {
        installed();
        let namespace = Namespace::new();
        eventually("the drain", || {
            kubectl_with(&drain(), &["apply", "-f", "-"]).ok()
        });
        let mut running = Follower::administrator();
        running.until_whole();
        assert_eq!(drains(&running), 1);
        let changed = Changed::to_another_version(DRAINS);
        let other_version = [
            "topologydrains.topology.ipvs-topo.io: OtherVersion (404): the server has it as v1alpha0, not as v1alpha1",
            "install the definitions that belong to this version (manifests/crds)",
        ];
        running.until_warned(&other_version);
        // Starts after the warning: for a moment the server has no version of the kind, and an
        // agent that starts then treats it as not installed.
        let mut starting = Follower::administrator();
        starting.until_warned(&other_version);
        assert_eq!(running.state(DRAINS).phase, Phase::Stale);
        assert_eq!(drains(&running), 1, "the objects are kept");
        // An agent that starts now works with the other kinds and reports a partial cluster.
        starting.until("a part of the cluster", |me| me.index.completeness());
        assert_eq!(starting.index.completeness(), Some(Completeness::Partial));
        create(&namespace.0, "a");
        for follower in [&mut running, &mut starting] {
            follower.until_service(&namespace.0, "a");
        }
        drop(changed);
        starting.until_whole();
        for follower in [&mut running, &mut starting] {
            follower.until_no_warnings();
            follower.until("the drain", |me| (drains(me) == 1).then_some(()));
        }
        ok(&["delete", "tdrain", "kept"]);
    }

    #[test]
    fn objects_that_an_older_schema_accepts_are_checked_by_the_agent() {
        installed();
        let _changed = Changed::new(POLICIES, |versions| {
            versions[0]["schema"]["openAPIV3Schema"] =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        });
        let policy = |name: &str, weight: &str| {
            let levels = json!([{"key": "topology.kubernetes.io/zone", weight: 90}, {"any": true, weight: 10}]);
            json!({
                "apiVersion": "topology.ipvs-topo.io/v1alpha1", "kind": "ClusterTopologyPolicy",
                "metadata": {"name": name}, "spec": {"mode": "Weighted", "levels": levels},
            })
            .to_string()
        };
        for text in [policy("older", "weight"), policy("odd", "wheight")] {
            eventually("the older schema", || {
                kubectl_with(&text, &["apply", "--validate=false", "-f", "-"]).ok()
            });
        }
        let mut follower = Follower::administrator();
        follower.until_whole();
        follower.until_warned(&["ClusterTopologyPolicy odd: spec.levels", "wheight"]);
        let names = |me: &Follower| -> Vec<String> {
            let policies = me.index.snapshot().policies();
            policies.map(|policy| policy.name.to_string()).collect()
        };
        assert_eq!(names(&follower), ["older"]);
        ok(&["delete", "ctp", "older", "odd"]);
    }
}
