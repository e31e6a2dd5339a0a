//! Single changes that alter the shares are found by trying them.

use std::sync::Arc;

use agent_api::explain::{ExplainInput, explain};
use clap::Parser as _;
use topology_core::model::{Drain, Service};
use topology_core::policy::{
    AnnotationChoice, LevelKey, MinReady, ZONE, beside_topology_keys, from_topology_keys,
};
use topology_core::resolve::{Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

use crate::args::{Cli, Command};
use crate::output::stages;
use crate::services::full_name;
use crate::simulate::tests::{cluster, within};

/// Change and effect, one per line, as seen from the first Node.
fn changes(snapshot: &Snapshot) -> Vec<String> {
    let me = Viewpoint::new("n00");
    let service = snapshot.services().next().unwrap().name.clone();
    let input = ExplainInput::of(snapshot, &mut [].iter(), &me, &service).unwrap();
    let changes = input.explain().unwrap().remove(0).what_if.unwrap();
    changes
        .into_iter()
        .map(|one| format!("{}: {}", one.change, one.effect))
        .collect()
}

#[test]
fn one_more_endpoint_ends_a_merge() {
    let merged = within(&[1, 4], |policy| {
        policy.levels[0].min_ready = MinReady {
            count: 2,
            percent: 0,
        };
    });
    let changes = changes(&merged);
    assert_eq!(
        changes[0],
        "one more ready endpoint in zone z0: ends the merge of level zone; zone 0 % to 100 %, * 100 % to 0 %"
    );
}

#[test]
fn three_more_endpoints_are_found_where_one_is_not_enough() {
    let merged = within(&[1, 4], |policy| {
        policy.levels[0].min_ready = MinReady {
            count: 4,
            percent: 0,
        };
    });
    let changes = changes(&merged);
    assert!(
        changes[0].starts_with("3 more ready endpoints in zone z0: ends the merge"),
        "{changes:?}"
    );
}

#[test]
fn losing_the_last_endpoint_of_a_boundary_refuses() {
    let hard = cluster(&[1, 1], &[("keys", "zone")]);
    let changes = changes(&hard);
    let expected = "losing the only endpoint in zone z0: clients are refused: no usable endpoint in the levels of the hard policy";
    assert!(changes.iter().any(|line| line == expected), "{changes:?}");
    assert!(
        changes
            .iter()
            .any(|line| line == "without the annotations: every ready endpoint alike (no policy)"),
        "{changes:?}"
    );
}

#[test]
fn topology_keys_stay_without_the_annotations_and_their_additions_without_topology_keys() {
    let with = |annotation: (&str, &str)| {
        let mut snapshot = cluster(&[1, 2], &[annotation]);
        let service = snapshot.services().next().unwrap().clone();
        let (keys, _) = from_topology_keys(&[ZONE]).unwrap();
        let asked = service.policy.as_deref().cloned();
        let asked = asked.map(|policy| AnnotationChoice::Policy(Box::new(policy)));
        let Some(AnnotationChoice::Policy(policy)) = beside_topology_keys(asked, keys.clone())
        else {
            panic!("a Service with two policies has one");
        };
        snapshot.set_service(Service {
            policy: Some(Arc::new(*policy)),
            topology_keys: keys.map(Arc::new),
            ..service
        });
        changes(&snapshot)
    };
    let weighed = with(("weights", "zone=50,*=50"));
    let expected = "without the annotations: in this zone, else refused (topologyKeys)";
    assert!(weighed.iter().any(|line| line == expected), "{weighed:?}");
    let avoiding = with(("avoid", "node"));
    let without = avoiding
        .iter()
        .find(|line| line.starts_with("without topologyKeys"));
    assert!(
        without.is_some_and(|line| line.contains("no policy")),
        "{avoiding:?}"
    );
}

#[test]
fn only_a_drain_with_an_effect_is_named() {
    let mut snapshot = cluster(&[1, 1], &[("keys", "zone,*")]);
    for (name, zone) in [("far", "z1"), ("near", "z0")] {
        let key = LevelKey::parse("zone").unwrap();
        snapshot.set_drain(Drain::of(name, key, vec![zone.into()]));
    }
    snapshot.remove_drain("far");
    let changes = changes(&snapshot);
    assert!(
        changes
            .iter()
            .any(|line| line == "without TopologyDrain near: zone 0 % to 100 %, * 100 % to 0 %"),
        "{changes:?}"
    );
}

#[test]
fn without_an_effective_change_none_is_printed() {
    assert_eq!(changes(&cluster(&[2, 2], &[])), Vec::<String>::new());
}

#[test]
fn a_small_share_is_reported_and_mh_is_not_proposed() {
    let note = |weights: &str, scheduler: &str| {
        let annotations = [("weights", weights), ("scheduler", scheduler)];
        let snapshot = cluster(&[1, 5], &annotations);
        let service = &snapshot.services().next().unwrap().name;
        let resolved = resolve(&snapshot, &Viewpoint::new("n00"), service)
            .servers
            .remove(0);
        explain(&resolved).scheduler_note
    };
    let small = note("zone=99,*=1", "wrr");
    assert!(
        small.contains("Level * gets 1.1 %") && !small.contains("mh"),
        "{small}"
    );
    assert!(!note("zone=90,*=10", "wrr").contains("may never reach it"));
    let mh = note("zone=99,*=1", "mh");
    assert!(mh.contains("small shares are not met"), "{mh}");
    assert!(note("zone=90,*=10", "lc").contains("weights are ignored"));
}

#[test]
fn d12_the_table_has_the_share_that_mh_achieves_beside_that_of_the_policy() {
    let annotations = [("weights", "zone=99,*=1"), ("scheduler", "mh")];
    let snapshot = cluster(&[1, 5], &annotations);
    let service = snapshot.services().next().unwrap().name.clone();
    let me = Viewpoint::new("n00");
    let resolved = resolve(&snapshot, &me, &service).servers.remove(0);
    let text = stages::text(&[explain(&resolved)], None);
    let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = text.lines().map(cells).collect();
    // The most unequal weights of `mh` are 63 to 1.
    for row in ["zone 1/1 99 % 99 % 92.7 %", "* 5/5 1 % 1 % 7.3 %"] {
        assert!(rows.iter().any(|line| line == row), "{row}: {text}");
    }
    assert!(text.contains("distinguishes weights 1 to 63"), "{text}");
    // Only `wrr` has a cycle.
    assert!(!text.contains("one cycle is"), "{text}");
}

#[test]
fn the_table_counts_an_endpoint_that_drains_as_draining_and_not_as_unready() {
    let mut snapshot = cluster(&[2, 1], &[("keys", "zone,*")]);
    let node = vec!["n01".into()];
    snapshot.set_drain(Drain::of("d", LevelKey::Node, node));
    let me = Viewpoint::new("n00");
    let service = snapshot.services().next().unwrap().name.clone();
    let resolved = resolve(&snapshot, &me, &service).servers.remove(0);
    let text = stages::text(&[explain(&resolved)], None);
    let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let zone = text
        .lines()
        .map(cells)
        .find(|line| line.starts_with("zone 1/2"));
    assert_eq!(
        zone.as_deref(),
        Some("zone 1/2, 1 draining 100 % 100 % 100 %"),
        "{text}"
    );
}

#[test]
fn a_service_without_a_namespace_is_in_that_of_the_context() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let config = "{current-context: a, contexts: [{name: a, context: {cluster: c, namespace: shop}}], \
                  clusters: [{name: c, cluster: {server: 'http://10.0.0.1'}}]}";
    std::fs::write(&path, config).unwrap();
    let kubeconfig = ["--node", "n1", "--kubeconfig", path.to_str().unwrap()];
    let files = ["--node", "n1", "--cluster", "-"];
    let cases = [
        (["svc/cart"].as_slice(), kubeconfig.as_slice(), "shop/cart"),
        (&["svc/cart", "-n", "bank"], &kubeconfig, "bank/cart"),
        (&["bank/cart"], &kubeconfig, "bank/cart"),
        (&["svc/cart"], &files, "default/cart"),
        (&["svc/cart"], &[], "default/cart"),
    ];
    for (service, origin, expected) in cases {
        let words = [&["ipvs-topo", "explain"], service, origin].concat();
        let Command::Explain(args) = Cli::parse_from(words).command else {
            panic!("another command");
        };
        let origin = args.origin.given();
        let namespace = args.namespace.as_deref();
        let name = full_name(&args.target.service, namespace, origin.as_ref()).unwrap();
        assert_eq!(name.to_string(), expected);
    }
}
