//! Vectors L: from Node labels to weights, in the fixture of the specification.

use std::collections::BTreeMap;

use topology_core::model::Drain;
use topology_core::policy::{Avoid, LevelKey, Policy, Weighting};

use crate::vectors::{Labels, each_vector, labels};
use crate::world::{self, Ep, RACK, REGION, World, ZONE, ep, weighted};

each_vector!(
    labels,
    check,
    [
        l01_hard_node = "L01",
        l02_hard_node_without_endpoints_is_refused = "L02",
        l03_hard_zone_on_a_node_without_a_zone_is_refused = "L03",
        l04_prefer_zone_on_a_node_without_a_zone = "L04",
        l05_prefer_node_zone_any = "L05",
        l06_rack_before_zone = "L06",
        l07_zone_once_the_rack_is_empty = "L07",
        l08_weighted_60_30_10 = "L08",
        l09_an_empty_zone_cascades = "L09",
        l10_two_empty_levels_cascade = "L10",
        l11_avoid_the_node_hard = "L11",
        l12_avoid_the_zone_hard = "L12",
        l13_avoid_the_node_soft_with_nothing_else = "L13",
        l14_avoid_the_node_hard_with_nothing_else_is_refused = "L14",
        l15_a_drained_zone_keeps_weight_zero = "L15",
        l16_a_drain_of_everything_is_ignored = "L16",
        l17_a_hard_zone_takes_no_part_in_the_drain = "L17",
        l18_a_zone_without_ready_endpoints_is_left = "L18",
        l19_a_hard_level_uses_what_still_serves = "L19",
        l20_nothing_ready_anywhere = "L20",
        l21_own_node_unknown_soft = "L21",
        l22_own_node_unknown_hard_is_refused = "L22",
        l23_twice_the_capacity_takes_twice_the_share = "L23",
        l24_endpoint_bias = "L24",
        l25_hard_region_behind_an_empty_node = "L25",
        l26_three_of_four_ready_are_too_few = "L26",
        l27_one_of_four_ready_spills = "L27",
    ]
);

fn fixture(vector: &Labels) -> World {
    let known = vector
        .opts
        .get("known")
        .is_none_or(|known| known != "False");
    let capacity = if vector.id == "L23" { "2" } else { "1" };
    let nodes: [(&str, &[(&str, &str)]); 6] = [
        ("n1", &[(ZONE, "a"), (RACK, "a1"), (REGION, "r1")]),
        (
            "n2",
            &[
                (ZONE, "a"),
                (RACK, "a1"),
                (REGION, "r1"),
                ("topology.ipvs-topo.io/capacity", capacity),
            ],
        ),
        ("n3", &[(ZONE, "a"), (RACK, "a2"), (REGION, "r1")]),
        ("n4", &[(ZONE, "b"), (RACK, "b1"), (REGION, "r1")]),
        ("n5", &[(ZONE, "c"), (RACK, "c1"), (REGION, "r2")]),
        ("n6", &[("kubernetes.io/hostname", "n6")]),
    ];
    let mut world = World::new(&vector.node);
    for (name, labels) in nodes {
        if known || name != vector.node {
            world = world.node(name, labels);
        }
    }
    world
}

/// `e1` to `e9`, or the list in the vector: `e1`, `e1(unready)`, `e9(term)`.
fn endpoints(vector: &Labels) -> Vec<Ep> {
    let standard = "e1 e2 e3 e4 e5 e6 e7 e8(unready) e9(term)";
    let listed: Vec<String> = match vector.opts.get("eps") {
        Some(list) => serde_json::from_value(list.clone()).unwrap(),
        None => standard.split(' ').map(str::to_owned).collect(),
    };
    listed.iter().map(|text| endpoint(text)).collect()
}

fn endpoint(text: &str) -> Ep {
    let (name, condition) = text.split_once('(').unwrap_or((text, ""));
    let node = match name {
        "e1" | "e9" => Some("n1"),
        "e2" | "e8" => Some("n2"),
        "e3" => Some("n3"),
        "e4" | "e5" => Some("n4"),
        "e6" => Some("n5"),
        _ => None,
    };
    let endpoint = ep(name[1..].parse().unwrap());
    let endpoint = match node {
        Some(node) => endpoint.on(node),
        None => endpoint,
    };
    match condition {
        "" => endpoint,
        "unready)" => endpoint.unready(),
        "term)" => endpoint.leaving(),
        other => panic!("unknown condition {other}"),
    }
}

/// The texts between single quotes in the option `name`: `[('zone', {'a', 'b'})]` is zone, a, b.
fn words<'v>(vector: &'v Labels, name: &str) -> Vec<&'v str> {
    let text = vector.opts.get(name).and_then(|value| value.as_str());
    text.unwrap_or_default()
        .split('\'')
        .skip(1)
        .step_by(2)
        .collect()
}

fn number(vector: &Labels, name: &str) -> Option<u32> {
    vector.opts.get(name)?.as_str()?.parse().ok()
}

fn options(vector: &Labels, policy: &mut Policy) {
    if vector.opts.contains_key("bias") {
        policy.weighting = Weighting::EndpointBias;
    }
    policy.overprovision = number(vector, "ovp");
    for level in &mut policy.levels {
        level.min_ready.percent = number(vector, "minpct").unwrap_or(0).try_into().unwrap();
    }
    if let [key, hardness] = words(vector, "avoid")[..] {
        policy.avoid.push(Avoid {
            key: LevelKey::parse(key).unwrap(),
            soft: hardness == "soft",
        });
    }
}

fn drain(vector: &Labels) -> Option<Drain> {
    let words = words(vector, "drains");
    let (key, values) = words.split_first()?;
    Some(world::drain(key, values))
}

fn check(vector: &Labels) {
    let levels: Vec<(&str, u32)> = vector
        .levels
        .iter()
        .map(|(key, weight)| (key.as_str(), *weight))
        .collect();
    let mut policy = weighted(&levels);
    options(vector, &mut policy);
    let mut world = fixture(vector).policy(policy).endpoints(endpoints(vector));
    if let Some(drain) = drain(vector) {
        world.snapshot.set_drain(drain);
    }
    let server = world.server();
    let name = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(v4) => format!("e{}", v4.octets()[3]),
        std::net::IpAddr::V6(v6) => v6.to_string(),
    };
    let weights: BTreeMap<String, u32> = (server.server.real_servers.iter())
        .map(|real| (name(real.address), real.weight))
        .collect();
    assert_eq!(weights, vector.weights.clone().unwrap_or_default());
    assert_eq!(server.decision.refusal.is_some(), vector.weights.is_none());
    assert_eq!(
        server.decision.endpoints.len(),
        endpoints(vector).len(),
        "each leaves with a reason"
    );
}
