//! The writes of the controller, and the change of the leader.

mod alone {
    //! A cluster has one `TopologyMap`.

    use crate::audit::{Audit, NAMESPACE, based, hired};
    use crate::gate::{Gate, Proxy};
    use crate::kubectl::{eventually, kubectl_with, ok};
    use crate::process::{ACCOUNT, Controller, becomes, drain, holder};

    const OBJECTS: &str = "
apiVersion: v1
kind: Node
metadata: {name: map-n1, labels: {topology.kubernetes.io/zone: a, pool: map}}
---
apiVersion: v1
kind: Node
metadata: {name: map-n2, labels: {topology.kubernetes.io/zone: b, pool: map, example.com/rack: b1, shelf: s2}}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: near}
spec:
  mode: Prefer
  nodeSelector: {matchLabels: {pool: map}}
  levels: [{key: example.com/rack}, {any: true}]
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyPolicy
metadata: {name: nearer, namespace: default}
spec:
  mode: Prefer
  levels: [{key: topology.kubernetes.io/zone}, {any: true}]
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyAgent
metadata: {name: map-n1}
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyAgent
metadata: {name: map-n2}
";

    /// The map, and the status of policies and drains.
    fn writes_map_and_status() {
        becomes(
            "tmap",
            "shard-0",
            "{.spec.nodes.map-n2.v}",
            r#"["b","","","b1","map"]"#,
        );
        let accepted = "{.status.conditions[?(@.type==\"Accepted\")].status}";
        becomes("ctp", "near", accepted, "True");
        becomes("tp", "nearer", accepted, "True");
        becomes("ctp", "near", "{.status.programmedNodes}", "0/2");
        let report = r#"{"status":{"version":"0.1.0","phase":"Serving","policies":[{"kind":"ClusterTopologyPolicy","name":"near","generation":1,"services":3}]}}"#;
        let patch = ["patch", "tagent", "map-n1", "--subresource=status"];
        ok(&[&patch[..], &["--type=merge", "-p", report]].concat());
        becomes("ctp", "near", "{.status.programmedNodes}", "1/2");
        becomes("ctp", "near", "{.status.matchedServices}", "3");
        for (hours, phase) in [(100, "Refused"), (1, "Active")] {
            kubectl_with(&drain("rack", hours), &["apply", "-f", "-"]).unwrap();
            becomes("tdrain", "rack", "{.status.phase}", phase);
        }
        for (kinds, shown) in [
            (
                "ctp,tp,tdrain",
                &["/near ", " 1/2 ", "/nearer ", "/rack ", " Active "][..],
            ),
            ("tmap,tagent", &["/shard-0 ", "/map-n1 ", " Serving "]),
        ] {
            let table = ok(&["get", kinds]);
            assert!(shown.iter().all(|words| table.contains(words)), "{table}");
        }
    }

    /// An annotation uses a label. The map still has it when the Service is deleted.
    fn follows_the_labels_of_annotations() {
        ok(&["create", "service", "clusterip", "annotated", "--tcp=80"]);
        let keys = "topology.ipvs-topo.io/keys=shelf,*";
        ok(&["annotate", "service", "annotated", keys]);
        becomes(
            "tmap",
            "shard-0",
            "{.spec.nodes.map-n2.v}",
            r#"["b","","","b1","map","s2"]"#,
        );
        ok(&["delete", "service", "annotated"]);
    }

    /// A kubelet reports two million processors: the other Nodes of its shard are still written.
    fn accepts_any_number_of_processors() {
        let huge = r#"{"status":{"allocatable":{"cpu":"2000001"}}}"#;
        ok(&[
            "patch",
            "node",
            "map-n2",
            "--subresource=status",
            "-p",
            huge,
        ]);
        let cpu = "{.spec.nodes.map-n2.cpuMilli}";
        becomes("tmap", "shard-0", cpu, "1000000000");
        label("e");
    }

    /// A cluster policy that is not applied has an Event, which `kubectl describe` shows.
    fn records_an_event_for_a_missing_label() {
        let typo = "
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: typo}
spec:
  mode: Hard
  nodeSelector: {matchLabels: {pool: map}}
  levels: [{key: az}]
";
        kubectl_with(typo, &["apply", "-f", "-"]).unwrap();
        eventually("the Event on the policy", || {
            let described = ok(&["describe", "ctp", "typo"]);
            let (_, events) = described.split_once("Events:")?;
            let is_reported =
                events.contains("LevelUnknown") && events.contains("did you mean zone?");
            is_reported.then_some(())
        });
        kubectl_with(typo, &["delete", "-f", "-"]).unwrap();
        becomes("tmap", "shard-0", "{.spec.keys[3]}", "example.com/rack");
    }

    /// A fallback that two agents report is one Event, and its end is another.
    fn records_events_for_fallbacks() {
        let report = |node: &str, fallbacks: &str| {
            let status = format!(
                "{{\"status\":{{\"version\":\"0.1.0\",\"phase\":\"Serving\",\"fallbacks\":{fallbacks}}}}}"
            );
            let patch = ["patch", "tagent", node, "--subresource=status"];
            ok(&[&patch[..], &["--type=merge", "-p", &status]].concat());
        };
        let now = jiff::Timestamp::now();
        let panic = format!(
            r#"[{{"service":"default/kubernetes","reason":"Panic","from":"Prefer","to":"Uniform","since":"{now:.0}"}}]"#
        );
        let invalid = format!(
            r#"[{{"service":"default/kubernetes","reason":"Invalid","to":"Uniform","since":"{now:.0}"}}]"#
        );
        for node in ["map-n1", "map-n2"] {
            report(node, &panic);
        }
        let regarding =
            "--field-selector=involvedObject.kind=Service,involvedObject.name=kubernetes";
        // The API server writes Events about Services, too.
        let ours = format!("{regarding},reportingComponent=ipvs-topo.io/controller");
        let reasons = || {
            let path = "-o=jsonpath={range .items[*]}{.reason} {.type}{\"\\n\"}{end}";
            let listed = ok(&["get", "events", "-n", "default", &ours, path]);
            let mut lines: Vec<String> = listed.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let fallback = "TopologyFallbackPanic Warning";
        eventually("the Event of the fallback", || {
            (reasons() == [fallback]).then_some(())
        });
        report("map-n2", &invalid);
        let refused = "TopologyInvalid Warning";
        eventually("the Event of annotations that are not valid", || {
            (reasons() == [fallback, refused]).then_some(())
        });
        for node in ["map-n1", "map-n2"] {
            report(node, "[]");
        }
        let applied = "TopologyApplied Normal";
        eventually("the Event of its end", || {
            (reasons() == [applied, fallback, refused]).then_some(())
        });
        let table = ok(&["events", "-n", "default", "--for", "service/kubernetes"]);
        assert!(table.contains("TopologyFallbackPanic"), "{table}");

        // Two writes of one Event are a minute apart.
        report("map-n1", &panic);
        eventually("a repetition in the same Event", || {
            let chosen = regarding.replace("involvedObject", "regarding");
            let chosen = format!("{chosen},reason=TopologyFallbackPanic");
            let count = "-o=jsonpath={.items[*].series.count}";
            let get = ["get", "events.events.k8s.io", "-n", "default"];
            (ok(&[&get[..], &[&chosen, count]].concat()) == "2").then_some(())
        });
        report("map-n1", "[]");
        let chosen = regarding.replace("involvedObject", "regarding");
        ok(&["delete", "events.events.k8s.io", "-n", "default", &chosen]);
    }

    fn version() -> String {
        let path = "-o=jsonpath={.metadata.resourceVersion}";
        ok(&["get", "tmap", "shard-0", path])
    }

    fn label(zone: &str) {
        let label = format!("topology.kubernetes.io/zone={zone}");
        ok(&["label", "node", "map-n1", &label, "--overwrite"]);
        becomes("tmap", "shard-0", "{.spec.nodes.map-n1.v[0]}", zone);
    }

    #[test]
    fn the_rules_of_the_base_are_sufficient_and_a_new_leader_continues() {
        let folder = tempfile::tempdir().unwrap();
        based();
        let kubeconfig = hired(ACCOUNT, &[], folder.path());
        // The controller must create the Lease and the map.
        ok(&["delete", "lease", "--all", "-n", NAMESPACE]);
        ok(&["delete", "tmap", "--all"]);
        let audit = Audit::of(ACCOUNT);
        kubectl_with(OBJECTS, &["apply", "-f", "-"]).unwrap();
        let first = Controller::start(&kubeconfig, "first");
        eventually("a leader", || first.leads().then_some(()));
        let second = Controller::start(&kubeconfig, "second");
        writes_map_and_status();
        follows_the_labels_of_annotations();
        accepts_any_number_of_processors();
        records_an_event_for_a_missing_label();
        records_events_for_fallbacks();

        let before = version();
        let heartbeat = r#"{"status":{"conditions":[{"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2026-11-21T20:00:00Z"}]}}"#;
        ok(&[
            "patch",
            "node",
            "map-n1",
            "--subresource=status",
            "-p",
            heartbeat,
        ]);
        assert!(first.leads() && first.end(), "the first exits with success");
        eventually("the second leads", || second.leads().then_some(()));
        assert_eq!(
            before,
            version(),
            "neither a heartbeat nor another leader changes the map"
        );
        label("c");

        // For this controller the server sends pages only.
        let proxy = Proxy::start(&kubeconfig);
        let gate = Gate::before(&proxy.address);
        gate.answer("sendInitialEvents", 422, "", "no lists as streams");
        let third = Controller::start(&gate.kubeconfig(folder.path()), "third");
        // A killed controller does not release the Lease, which must expire.
        drop(second);
        eventually("the third leads", || third.leads().then_some(()));
        label("d");
        assert!(third.end());
        assert_eq!(holder(), Some(String::new()), "the lease is free");
        audit.replay();
        kubectl_with(OBJECTS, &["delete", "-f", "-"]).unwrap();
        ok(&["delete", "tdrain", "rack"]);
        ok(&["delete", "tmap", "--all"]);
    }
}
