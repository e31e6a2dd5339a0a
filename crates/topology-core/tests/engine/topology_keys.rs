//! `spec.topologyKeys` as in Kubernetes 1.17 to 1.21: its own tests T0 to T10, rows that they lack, and its validation
//! V1 to V13.

use std::collections::BTreeMap;
use std::sync::Arc;

use topology_core::policy::{LevelKey, Mode, from_topology_keys};

use crate::world::{Ep, REGION, World, ZONE, at};

const HOST: &str = "kubernetes.io/hostname";

/// Endpoints per node.
type Placed<'a> = &'a [(&'a str, u8)];

/// Nodes N1 and N2 in zone 90001, N3 and N4 in 90002, all in region cd; also `me`, if it has no endpoints.
fn world(me: &str, my_zone: &str, placed: Placed<'_>, keys: &[&str]) -> World {
    let zone_of = |node: &str| if node < "N3" { "90001" } else { "90002" };
    let mut world = World::new(me);
    for node in ["N1", "N2", "N3", "N4"] {
        world = world.node(node, &[(HOST, node), (ZONE, zone_of(node)), (REGION, "cd")]);
    }
    let world = world.node(me, &[(HOST, me), (ZONE, my_zone), (REGION, "cd")]);
    with_keys(world, placed, keys)
}

fn with_keys(world: World, placed: Placed<'_>, keys: &[&str]) -> World {
    let mut world = world.endpoints(endpoints(placed));
    world.service.policy = from_topology_keys(keys).unwrap().0.map(Arc::new);
    world
}

fn endpoints(placed: Placed<'_>) -> Vec<Ep> {
    let mut endpoints = Vec::new();
    for (index, (node, count)) in placed.iter().enumerate() {
        for number in 0..*count {
            let address = [10, 244, u8::try_from(index).unwrap(), number].into();
            endpoints.push(if node.is_empty() {
                at(address)
            } else {
                at(address).on(node)
            });
        }
    }
    endpoints
}

/// The number of chosen endpoints of each Node; all with the same weight.
#[track_caller]
fn expect(mut world: World, chosen: Placed<'_>) {
    let server = world.server();
    let mut counted: BTreeMap<String, u8> = BTreeMap::new();
    for endpoint in server
        .decision
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.is_chosen())
    {
        let node = endpoint.node.as_deref().unwrap_or_default().to_owned();
        *counted.entry(node).or_default() += 1;
        assert_eq!(endpoint.weight, 1);
    }
    let chosen: BTreeMap<String, u8> = chosen
        .iter()
        .map(|(node, count)| ((*node).to_owned(), *count))
        .collect();
    assert_eq!(counted, chosen);
    let programmed = server.server.real_servers.len();
    assert_eq!(
        programmed,
        counted
            .values()
            .map(|count| usize::from(*count))
            .sum::<usize>()
    );
}

const TWO_NODES: Placed<'_> = &[("N1", 2), ("N2", 2)];
const FOUR_NODES: Placed<'_> = &[("N1", 2), ("N2", 2), ("N3", 2), ("N4", 2)];

#[test]
fn t0_no_endpoints() {
    expect(world("N1", "90001", &[], &[]), &[]);
}

#[test]
fn t1_no_keys_is_no_constraint() {
    expect(world("N1", "90001", TWO_NODES, &[]), TWO_NODES);
}

#[test]
fn t2_host() {
    expect(world("N1", "90001", TWO_NODES, &[HOST]), &[("N1", 2)]);
}

#[test]
fn t3_host_without_endpoints_there() {
    expect(world("N3", "90001", TWO_NODES, &[HOST]), &[]);
}

#[test]
fn t4_zone() {
    expect(world("N2", "90001", FOUR_NODES, &[ZONE]), TWO_NODES);
}

#[test]
fn t5_host_with_endpoints_elsewhere_too() {
    expect(world("N2", "90001", FOUR_NODES, &[HOST]), &[("N2", 2)]);
}

#[test]
fn t6_host_then_zone() {
    expect(
        world("N5", "90002", FOUR_NODES, &[HOST, ZONE]),
        &[("N3", 2), ("N4", 2)],
    );
}

#[test]
fn t7_neither_host_nor_zone() {
    expect(world("N5", "90003", FOUR_NODES, &[HOST, ZONE]), &[]);
}

#[test]
fn t8_host_then_any_with_endpoints_on_the_host() {
    expect(world("N1", "90001", TWO_NODES, &[HOST, "*"]), &[("N1", 2)]);
}

#[test]
fn t9_host_then_any_without_endpoints_on_the_host() {
    expect(world("N3", "90001", TWO_NODES, &[HOST, "*"]), TWO_NODES);
}

#[test]
fn t10_host_then_zone_then_any() {
    expect(
        world("N5", "90003", FOUR_NODES, &[HOST, ZONE, "*"]),
        FOUR_NODES,
    );
}

// Rows that the original tests lacked.

#[test]
fn own_node_unknown_is_any_with_a_star_and_nothing_without() {
    let unknown = |keys| {
        with_keys(
            World::new("me").node("N1", &[(ZONE, "z")]),
            &[("N1", 2), ("me", 1)],
            keys,
        )
    };
    expect(unknown(&[ZONE, "*"]), &[("N1", 2), ("me", 1)]);
    expect(unknown(&["*"]), &[("N1", 2), ("me", 1)]);
    expect(unknown(&[ZONE]), &[]);
    expect(unknown(&[HOST]), &[]);
}

#[test]
fn a_key_that_the_own_node_lacks_is_skipped() {
    let world = World::new("me")
        .node("me", &[(REGION, "cd")])
        .node("N1", &[(ZONE, "z"), (REGION, "cd")]);
    expect(
        with_keys(world, &[("N1", 1)], &[ZONE, REGION]),
        &[("N1", 1)],
    );
}

#[test]
fn two_nodes_without_a_label_do_not_share_it() {
    let world = World::new("me").node("me", &[]).node("N1", &[]);
    expect(with_keys(world, &[("N1", 1)], &[ZONE]), &[]);
}

#[test]
fn a_key_that_some_endpoints_lack_chooses_the_others() {
    let world = World::new("me")
        .node("me", &[(ZONE, "z")])
        .node("N1", &[(ZONE, "z")])
        .node("N2", &[]);
    expect(
        with_keys(world, &[("N1", 1), ("N2", 1)], &[ZONE, "*"]),
        &[("N1", 1)],
    );
}

#[test]
fn a_star_alone_is_any() {
    expect(world("N1", "90001", FOUR_NODES, &["*"]), FOUR_NODES);
}

#[test]
fn keys_need_not_nest() {
    let world = World::new("me")
        .node("me", &[("disk", "ssd"), (ZONE, "a")])
        .node("N1", &[("disk", "hdd"), (ZONE, "a")])
        .node("N2", &[("disk", "ssd"), (ZONE, "b")]);
    let placed: Placed<'_> = &[("N1", 1), ("N2", 1)];
    expect(with_keys(world, placed, &["disk", ZONE]), &[("N2", 1)]);
    let world = World::new("me")
        .node("me", &[("disk", "tape"), (ZONE, "a")])
        .node("N1", &[("disk", "hdd"), (ZONE, "a")])
        .node("N2", &[("disk", "ssd"), (ZONE, "b")]);
    expect(with_keys(world, placed, &["disk", ZONE]), &[("N1", 1)]);
}

#[test]
fn an_endpoint_without_a_node_matches_any_only() {
    let placed: Placed<'_> = &[("", 1), ("N1", 1)];
    expect(world("N1", "90001", placed, &[HOST, "*"]), &[("N1", 1)]);
    expect(world("N1", "90001", &[("", 1)], &[HOST, ZONE, REGION]), &[]);
    expect(world("N1", "90001", &[("", 1)], &[HOST, "*"]), &[("", 1)]);
}

#[test]
fn an_empty_value_is_not_shared() {
    let world = World::new("me")
        .node("me", &[(ZONE, "")])
        .node("N1", &[(ZONE, "")]);
    expect(with_keys(world, &[("N1", 1)], &[ZONE]), &[]);
}

#[test]
fn the_hostname_key_compares_node_names_and_not_labels() {
    let world = World::new("me")
        .node("me", &[(HOST, "ip-10-0-0-1")])
        .node("N1", &[(HOST, "ip-10-0-0-1")]);
    expect(
        with_keys(world, &[("me", 1), ("N1", 1)], &[HOST]),
        &[("me", 1)],
    );
}

// Validation.

/// The fields with errors.
fn refused(keys: &[&str]) -> Vec<String> {
    let errors = from_topology_keys(keys).unwrap_err();
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn v1_an_empty_list_is_no_constraint() {
    assert_eq!(from_topology_keys::<&str>(&[]).unwrap(), (None, vec![]));
}

#[test]
fn v3_sixteen_keys_are_valid() {
    let keys: Vec<String> = (0..16).map(|index| format!("k{index}")).collect();
    assert_eq!(
        from_topology_keys(&keys).unwrap().0.unwrap().levels.len(),
        16
    );
}

#[test]
fn v4_seventeen_keys_are_too_many() {
    let keys: Vec<String> = (0..17).map(|index| format!("k{index}")).collect();
    let errors = from_topology_keys(&keys).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "spec.topologyKeys: 17 keys; at most 16 are allowed"
    );
}

#[test]
fn v5_the_same_key_twice_is_refused_at_the_second() {
    assert_eq!(refused(&["a", "b", "a"]), ["spec.topologyKeys[2]"]);
    assert!(refused(&["*", "*"]).contains(&"spec.topologyKeys[1]".to_owned()));
}

#[test]
fn v6_a_star_that_is_not_last_is_refused_there() {
    assert_eq!(refused(&["a", "*", "b"]), ["spec.topologyKeys[1]"]);
}

#[test]
fn v7_a_star_alone_is_valid() {
    let policy = from_topology_keys(&["*"]).unwrap().0.unwrap();
    assert_eq!(
        (policy.mode, policy.levels[0].key.clone()),
        (Mode::Prefer, LevelKey::Any)
    );
}

#[test]
fn v8_an_invalid_label_key_is_refused() {
    let long = "x".repeat(64);
    for key in [
        "-a", "a-", "a b", "a/b/c", "A.com/b", "/b", "a..b/c", "ä", &long,
    ] {
        assert_eq!(refused(&[key, "ok"]), ["spec.topologyKeys[0]"], "{key}");
    }
}

#[test]
fn v9_an_empty_key_is_refused_unless_it_is_the_last() {
    assert_eq!(refused(&["", "a"]), ["spec.topologyKeys[0]"]);
    let (policy, warnings) = from_topology_keys(&["a", ""]).unwrap();
    assert_eq!(policy.unwrap().levels[1].key, LevelKey::Any);
    assert_eq!(
        (warnings.len(), warnings[0].field.as_str()),
        (1, "spec.topologyKeys[1]")
    );
    assert_eq!(
        refused(&["*", ""]),
        ["spec.topologyKeys[0]", "spec.topologyKeys[1]"]
    );
}

#[test]
fn v10_any_label_key_is_valid_and_works() {
    let world = World::new("me")
        .node("me", &[("example.com/rack", "r")])
        .node("N1", &[("example.com/rack", "r")]);
    expect(
        with_keys(world, &[("N1", 1), ("N2", 1)], &["example.com/rack"]),
        &[("N1", 1)],
    );
}

#[test]
fn the_field_has_no_aliases() {
    let policy = from_topology_keys(&["zone", "node"]).unwrap().0.unwrap();
    let keys: Vec<_> = policy.levels.into_iter().map(|level| level.key).collect();
    assert_eq!(
        keys,
        [
            LevelKey::Label("zone".into()),
            LevelKey::Label("node".into())
        ]
    );
}
