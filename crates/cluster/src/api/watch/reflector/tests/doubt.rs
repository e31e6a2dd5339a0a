//! Tests that a relist that lacks most known objects is not believed at once.

use super::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Every resource listed once, with four Nodes, Services and slices.
fn bench(relists: Relists) -> Bench {
    let mut bench = Bench::with(relists);
    bench.list(NODES, NAMES.map(|name| node(name, "z")));
    bench.list(SERVICES, NAMES.map(|name| service(name, 80)));
    bench.list(SLICES, NAMES.map(slice));
    for id in listed_always().skip(3) {
        bench.list(id, []);
    }
    bench.deliver();
    assert_eq!(known(&bench), [4, 4, 4]);
    bench
}

fn slice(name: &str) -> Node {
    let metadata = format!(
        r#"{{"name":"{name}","namespace":"shop","labels":{{"kubernetes.io/service-name":"{name}"}}}}"#
    );
    let endpoints = r#"[{"addresses":["10.244.0.1"]}]"#;
    object(
        SLICES,
        &format!(
            r#"{{"metadata":{metadata},"addressType":"IPv4","ports":[{{"port":80}}],"endpoints":{endpoints}}}"#
        ),
    )
}

/// Counts the known Nodes, Services and slices.
fn known(bench: &Bench) -> [usize; 3] {
    let snapshot = bench.index.snapshot();
    [
        snapshot.nodes().count(),
        snapshot.services().count(),
        snapshot.slice_names().count(),
    ]
}

/// Lists these objects; the list ends at `second`.
fn relist(bench: &mut Bench, second: u64, id: ResourceId, objects: impl IntoIterator<Item = Node>) {
    bench.reflector.begin(id);
    for object in objects {
        bench.reflector.apply_object(id, &object);
    }
    bench.reflector.listed(id, Duration::from_secs(second));
    bench.deliver();
}

fn warnings(bench: &Bench) -> Vec<String> {
    bench.index.warnings().map(ToString::to_string).collect()
}

#[test]
fn d13_an_empty_list_removes_nothing_until_a_second_one_a_minute_later_is_empty_too() {
    let mut bench = bench(Relists::Confirm);
    for id in [NODES, SERVICES, SLICES] {
        relist(&mut bench, 100, id, []);
        assert_eq!(
            bench.reflector.doubt(id),
            Some((Duration::from_secs(160), 4)),
            "the time of the second list is known"
        );
    }
    assert_eq!(known(&bench), [4, 4, 4]);
    let said = warnings(&bench);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("lacks 4 objects"), "{said:?}");
    // An earlier list confirms nothing.
    relist(&mut bench, 159, SERVICES, []);
    assert_eq!(known(&bench), [4, 4, 4]);
    for id in [NODES, SERVICES, SLICES] {
        relist(&mut bench, 160, id, []);
    }
    assert_eq!(known(&bench), [0, 0, 0]);
    assert_eq!(warnings(&bench), [""; 0]);
}

#[test]
fn d13_a_second_list_that_names_everything_ends_the_doubt() {
    let mut bench = bench(Relists::Confirm);
    relist(&mut bench, 0, SERVICES, []);
    relist(
        &mut bench,
        60,
        SERVICES,
        NAMES.map(|name| service(name, 80)),
    );
    assert_eq!(
        (known(&bench), bench.reflector.doubt(SERVICES)),
        ([4, 4, 4], None)
    );
    assert_eq!(warnings(&bench), [""; 0]);
    relist(&mut bench, 1000, SERVICES, []);
    assert_eq!(known(&bench), [4, 4, 4], "this list is doubted, too");
}

#[test]
fn half_is_believed_and_so_is_a_watch_event() {
    let mut bench = bench(Relists::Confirm);
    relist(
        &mut bench,
        0,
        SERVICES,
        ["a", "b"].map(|name| service(name, 80)),
    );
    assert_eq!(known(&bench), [4, 2, 4]);
    relist(&mut bench, 1, SERVICES, []);
    assert_eq!(known(&bench), [4, 2, 4]);
    for name in ["a", "b"] {
        bench.reflector.delete_object(SERVICES, &service(name, 80));
    }
    bench.deliver();
    assert_eq!(known(&bench), [4, 0, 4]);
}

#[test]
fn an_object_that_the_first_list_named_is_not_removed_by_the_second_alone() {
    let mut bench = bench(Relists::Confirm);
    relist(&mut bench, 0, NODES, [node("a", "z")]);
    // A watch event for a missing Node comes meanwhile.
    bench.reflector.apply_object(NODES, &node("b", "z"));
    relist(&mut bench, 60, NODES, []);
    assert_eq!(bench.zones().into_keys().collect::<Vec<_>>(), ["a", "b"]);
    relist(&mut bench, 120, NODES, []);
    assert_eq!(bench.zones().len(), 0);
}

#[test]
fn the_first_list_of_a_start_is_believed() {
    let mut bench = Bench::with(Relists::Confirm);
    bench.reflector.begin(SERVICES);
    bench.reflector.apply_object(SERVICES, &service("gone", 80));
    // The list breaks, and begins again.
    relist(&mut bench, 0, SERVICES, []);
    assert_eq!(known(&bench), [0, 0, 0]);
}

#[test]
fn d13_an_empty_list_opens_no_boundary_and_ends_no_drain_at_once() {
    let written = [
        (
            POLICIES,
            r#"{"metadata":{"name":"a"},"spec":{"mode":"None"}}"#,
        ),
        (
            DRAINS,
            r#"{"metadata":{"name":"a"},"spec":{"match":{"key":"zone","values":["b"]},"expiresAt":"2026-11-21T00:00:00Z"}}"#,
        ),
        (
            CIDRS,
            r#"{"metadata":{"name":"a"},"spec":{"cidrs":["10.96.0.0/16"]}}"#,
        ),
    ];
    let count = |bench: &Bench| {
        let snapshot = bench.index.snapshot();
        let ranges = snapshot.service_cidrs().len();
        [
            snapshot.policies().count(),
            snapshot.drains().count(),
            ranges,
        ]
    };
    let mut bench = bench(Relists::Confirm);
    for (id, text) in written {
        relist(&mut bench, 0, id, [object(id, text)]);
    }
    assert_eq!(count(&bench), [1, 1, 1]);
    for second in [1, 60] {
        for (id, _) in written {
            relist(&mut bench, second, id, []);
        }
        assert_eq!(count(&bench), [1, 1, 1]);
    }
    for (id, text) in written {
        bench.reflector.apply_object(id, &object(id, text));
        bench.reflector.absent(id);
    }
    bench.deliver();
    assert_eq!(
        count(&bench),
        [0, 0, 0],
        "a CRD that was removed takes its objects along"
    );
}

#[test]
fn d13_a_list_of_another_cluster_removes_nothing_until_a_second_one_agrees() {
    let mut bench = bench(Relists::Confirm);
    let names = |names: &[&str]| -> Vec<Node> {
        let services = names.iter().map(|name| service(name, 80));
        services.collect()
    };
    let known = |bench: &Bench| -> String {
        let services = bench.index.snapshot().services();
        services.map(|service| &*service.name.name).collect()
    };
    let others = ["e", "f", "g", "h"];
    // The list breaks, and begins again.
    bench.reflector.begin(SERVICES);
    bench.reflector.apply_object(SERVICES, &service("e", 80));
    relist(&mut bench, 0, SERVICES, names(&others));
    assert_eq!(known(&bench), "abcdefgh");
    assert_eq!(bench.reflector.doubt(SERVICES).unwrap().1, 4);
    for name in ["i", "j", "k"] {
        bench.reflector.apply_object(SERVICES, &service(name, 80));
    }
    relist(
        &mut bench,
        30,
        SERVICES,
        names(&["e", "f", "g", "h", "i", "j", "k"]),
    );
    assert_eq!(known(&bench), "abcdefghijk", "too early");
    // A third cluster: objects that neither list named are removed, those of the first list stay.
    relist(&mut bench, 60, SERVICES, names(&["v", "w", "x", "y", "z"]));
    assert_eq!(known(&bench), "efghijkvwxyz");
    relist(&mut bench, 119, SERVICES, names(&["v", "w", "x", "y", "z"]));
    assert_eq!(known(&bench), "efghijkvwxyz");
    relist(&mut bench, 120, SERVICES, names(&["v", "w", "x", "y", "z"]));
    assert_eq!(
        (known(&bench), bench.reflector.doubt(SERVICES)),
        ("vwxyz".to_owned(), None)
    );
}

#[test]
fn with_the_guard_turned_off_a_list_is_believed_at_once() {
    let mut bench = bench(Relists::Believe);
    relist(&mut bench, 0, SERVICES, []);
    assert_eq!(known(&bench), [4, 0, 4]);
}

#[test]
fn d13_annotations_use_only_the_labels_that_administrators_name() {
    let mut bench = bench(Relists::Confirm);
    for (keys, allowed) in [
        ("example.com/rack,zone,*", true),
        ("zone,example.com/x0,*", false),
        ("node,zone", true),
    ] {
        let text = format!(
            r#"{{"metadata":{{"name":"a","namespace":"shop","annotations":{{"topology.ipvs-topo.io/keys":"{keys}"}}}},
            "spec":{{"clusterIP":"10.96.0.1","clusterIPs":["10.96.0.1"],"ports":[{{"port":80}}]}}}}"#
        );
        bench
            .reflector
            .apply_object(SERVICES, &object(SERVICES, &text));
        bench.reflector.request_nodes();
        relist(&mut bench, 0, NODES, NAMES.map(|name| node(name, "z")));
        let service = bench.index.snapshot().services().next().unwrap();
        assert_eq!(service.policy.is_some(), allowed, "{keys}");
        let said = warnings(&bench);
        assert_eq!(said.is_empty(), allowed, "{keys}: {said:?}");
        if !allowed {
            assert!(
                said[0].contains("may not use the label example.com/x0"),
                "{said:?}"
            );
            assert_eq!(
                bench.index.warnings().next().unwrap().code.as_str(),
                "TopologyInvalid"
            );
        }
    }
}
