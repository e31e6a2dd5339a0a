//! The real API server accepts the CRDs of `manifests/crds`.

use std::fs;
use std::path::Path;

use crate::kubectl::{eventually, installed, kubectl, kubectl_with};

fn definitions() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/crds");
    let files = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| !path.ends_with("kustomization.yaml"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn every_definition_is_accepted_strictly_and_explained() {
    let definitions = definitions();
    assert!(definitions.len() >= 3);
    installed();
    for definition in definitions {
        let apply = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
        let name = ["-o=jsonpath={.metadata.name}"];
        let name = kubectl_with(&definition, &[&apply[..], &name].concat()).unwrap();
        let explained = eventually(&name, || kubectl(&["explain", &name]).ok());
        assert!(explained.contains("DESCRIPTION:"), "{explained}");
        // Reports of agents have no spec.
        let spec = ["spec\t<Object> -required-", "The desired state."];
        let is_report = name.starts_with("topologyagents.");
        assert!(
            spec.iter()
                .all(|field| explained.contains(field) != is_report),
            "{explained}"
        );
    }
}

#[test]
fn a_policy_without_a_guard_gets_a_guard_with_every_default() {
    installed();
    let policy = "\
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata:
  name: defaults
spec:
  mode: None
";
    let guard = [
        "create",
        "--dry-run=server",
        "-o=jsonpath={.spec.guard}",
        "-f",
        "-",
    ];
    let kept = eventually("the policy's defaults", || {
        kubectl_with(policy, &guard).ok()
    });
    assert_eq!(
        kept,
        r#"{"demand":"NodeCount","minEndpoints":0,"panicPercent":0,"residual":"Capacity","staticDemand":{}}"#
    );
}
