//! The tables of the specification, read from `tests/vectors/hints.json`: one test for each row, by its ID.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::allocation::{Allocation, Counts, Moves, Quota};
use super::{Event, Member, Slice, Slices, Trouble, Wanted, Zones, auto, reconcile, write};
use crate::model::{Endpoint, EndpointSlice, Family, Hints, Node, ObjectName};
use crate::ratio::Ratio;

#[derive(Deserialize)]
struct Tables {
    add: Vec<Add>,
    nodes: Vec<NodesCase>,
    moves: Vec<MovesRow>,
    redistribute: Vec<Redistribute>,
    existing: Vec<Existing>,
    ready: Vec<ReadyTotal>,
    refused: Vec<Refused>,
    switches: Vec<Switches>,
    distribution: Vec<Distribution>,
}

#[derive(Deserialize)]
struct Add {
    id: String,
    cpu: BTreeMap<String, u64>,
    create: Vec<Vec<String>>,
    update: Vec<Vec<String>>,
    hints: Vec<String>,
    event: String,
}

#[derive(Deserialize)]
struct NodesCase {
    id: String,
    cluster: Vec<NodeRow>,
    share: Option<BTreeMap<String, (u64, u64)>>,
}

#[derive(Deserialize)]
struct NodeRow {
    zone: String,
    cpu: u64,
    ready: bool,
    control_plane: bool,
}

#[derive(Deserialize)]
struct MovesRow {
    id: String,
    desired: BTreeMap<String, f64>,
    hinted: Counts,
    give: Counts,
    receive: Counts,
}

#[derive(Deserialize)]
struct Redistribute {
    id: String,
    slices: Vec<Vec<String>>,
    give: Counts,
    receive: Counts,
    change: Counts,
}

#[derive(Deserialize)]
struct Existing {
    id: String,
    slice: Vec<String>,
    most: Counts,
    already: Counts,
    counts: Option<Counts>,
}

#[derive(Deserialize)]
struct ReadyTotal {
    id: String,
    slices: Vec<(usize, usize)>,
    total: usize,
}

#[derive(Deserialize)]
struct Refused {
    id: String,
    cpu: BTreeMap<String, u64>,
    endpoints: Vec<usize>,
}

#[derive(Deserialize)]
struct Switches {
    id: String,
    older: Option<String>,
    newer: Option<String>,
    field: Option<String>,
    wanted: String,
}

#[derive(Deserialize)]
struct Distribution {
    id: String,
    wanted: String,
    create: Vec<Vec<String>>,
    update: Vec<Vec<String>>,
    keep: Vec<Vec<String>>,
    written: Vec<Vec<String>>,
    kept: Vec<Vec<String>>,
}

fn tables() -> Tables {
    serde_json::from_str(include_str!("../../tests/vectors/hints.json")).unwrap()
}

/// A test for each row of a table, and one that finds rows without a test.
macro_rules! rows {
    ($all:ident, $table:ident, $check:path, [$($test:ident = $id:literal),* $(,)?]) => {
        $(
            #[test]
            fn $test() {
                let table = tables().$table;
                $check(table.iter().find(|row| row.id == $id).expect("the file holds the row"));
            }
        )*

        #[test]
        fn $all() {
            let ids: Vec<String> = tables().$table.into_iter().map(|row| row.id).collect();
            assert_eq!(ids, [$($id),*]);
        }
    };
}

rows!(
    every_row_of_add_is_a_test,
    add,
    check_add,
    [
        a1_nothing_at_all = "A1",
        a2_no_zones = "A2",
        a3_fewer_endpoints_than_zones = "A3",
        a4_every_endpoint_for_its_own_zone = "A4",
        a5_only_what_is_said_to_be_ready_is_hinted = "A5",
        a6_a_zone_with_too_many_gives_one_away = "A6",
    ]
);

rows!(
    every_row_of_nodes_is_a_test,
    nodes,
    check_nodes,
    [
        n1_no_nodes = "N1",
        n2_one_node = "N2",
        n3_one_zone = "N3",
        n4_two_zones = "N4",
        n5_one_zone_is_ready = "N5",
        n6_one_zone_is_not_of_the_control_plane = "N6",
        n7_a_node_that_is_not_ready_does_not_count = "N7",
        n8_a_node_of_the_control_plane_does_not_count = "N8",
        n9_shares_follow_cpu = "N9",
    ]
);

rows!(
    every_row_of_moves_is_a_test,
    moves,
    check_moves,
    [
        g1_nothing = "G1",
        g2_small_lacks_move_nothing = "G2",
        g3_a_rest_below_one_is_not_chased = "G3",
        g4_a_whole_rest_moves_to_more_than_a_half = "G4",
        g5_two_give_to_one = "G5",
        g6_all_have_too_much = "G6",
        g7_negative_wishes = "G7",
        g8_negative_counts = "G8",
        g9_one_far_below_nothing = "G9",
    ]
);

rows!(
    every_row_of_redistribute_is_a_test,
    redistribute,
    check_redistribute,
    [
        r1_nothing_to_move = "R1",
        r2_the_only_endpoint_moves = "R2",
        r3_two_of_three_move_to_two_zones = "R3",
    ]
);

rows!(
    every_row_of_existing_is_a_test,
    existing,
    check_existing,
    [
        e1_an_empty_slice_stays = "E1",
        e2_one_hint_within_bounds = "E2",
        e3_what_is_not_ready_does_not_count = "E3",
        e4_hints_are_counted_by_zone = "E4",
        e5_a_zone_that_is_not_wanted = "E5",
        e6_an_endpoint_without_hints = "E6",
        e7_hints_without_zones = "E7",
        e8_more_than_the_zone_may_be_left_with = "E8",
    ]
);

rows!(
    every_row_of_ready_is_a_test,
    ready,
    check_ready,
    [
        h1_two_slices = "H1",
        h2_five_slices = "H2",
        h3_only_ready_endpoints_count = "H3",
    ]
);

rows!(
    every_row_of_refused_is_a_test,
    refused,
    check_refused,
    [
        f1_two_equal_zones = "F1",
        f2_three_equal_zones = "F2",
        f3_four_equal_zones = "F3",
        f4_the_example_of_the_kep = "F4",
        f5_half_and_two_quarters = "F5",
    ]
);

rows!(
    every_row_of_switches_is_a_test,
    switches,
    check_switches,
    [
        s1_the_new_annotation = "S1",
        s2_an_annotation_goes_before_the_field = "S2",
        s3_the_old_annotation = "S3",
        s4_the_old_annotation_decides_where_both_are = "S4",
        s5_the_old_annotation_decides_for_auto_too = "S5",
        s6_spelling_matters = "S6",
        s7_an_empty_annotation_is_off = "S7",
        s8_prefer_close_is_prefer_same_zone = "S8",
        s9_an_unknown_value_is_none = "S9",
    ]
);

rows!(
    every_row_of_distribution_is_a_test,
    distribution,
    check_distribution,
    [
        d1_slices_to_write_get_hints = "D1",
        d2_wrong_hints_are_corrected = "D2",
        d3_no_zone_no_hint = "D3",
        d4_unready_endpoints_are_no_reason_to_write = "D4",
        d5_hints_that_nobody_wants_go = "D5",
        d6_unready_endpoints_keep_their_hints = "D6",
    ]
);

fn node(name: usize, zone: &str, cpu_milli: u64) -> Node {
    let labels = [(Arc::from("topology.kubernetes.io/zone"), Arc::from(zone))];
    Node {
        name: format!("n{name}").into(),
        labels: labels.into_iter().collect(),
        addresses: Vec::new(),
        cpu_milli,
        ready: true,
        leaving: false,
    }
}

fn zones(cpu: &BTreeMap<String, u64>) -> Option<Zones> {
    let nodes: Vec<Node> = cpu
        .iter()
        .enumerate()
        .map(|(number, (zone, cpu))| node(number, zone, *cpu))
        .collect();
    Zones::of(&nodes)
}

/// An endpoint as the file's legend says.
fn member(text: &str) -> Member {
    let (place, hints) = match text.split_once('=') {
        Some((place, zones)) => (place, Some(zones)),
        None => (text, None),
    };
    let (zone, condition) = place.split_at(place.len() - 1);
    Member {
        node: (!zone.is_empty()).then(|| Arc::from(format!("node-{zone}"))),
        zone: (!zone.is_empty()).then(|| zone.into()),
        ready: match condition {
            "+" => Some(true),
            "-" => Some(false),
            "?" => None,
            other => panic!("{other} is no condition"),
        },
        hints: hints.map(|zones| Hints {
            zones: zones
                .split(',')
                .filter(|zone| !zone.is_empty())
                .map(Arc::from)
                .collect(),
            nodes: Vec::new(),
        }),
    }
}

fn slice(members: &[String]) -> Slice {
    Slice {
        name: "x".into(),
        members: members.iter().map(|text| member(text)).collect(),
    }
}

fn slices(all: &[Vec<String>]) -> Vec<Slice> {
    all.iter().map(|members| slice(members)).collect()
}

fn counts(slices: &[Slice]) -> Counts {
    let mut counts = Counts::new();
    let hints = slices
        .iter()
        .flat_map(|slice| &slice.members)
        .filter_map(|member| member.hints.as_ref());
    for zone in hints.flat_map(|hints| &hints.zones) {
        *counts.entry(Arc::clone(zone)).or_default() += 1;
    }
    counts
}

fn check_add(row: &Add) {
    let mut slices = Slices {
        create: slices(&row.create),
        update: slices(&row.update),
        keep: Vec::new(),
    };
    let event = reconcile(
        Wanted::Auto,
        zones(&row.cpu).as_ref(),
        Family::V4,
        false,
        &mut slices,
    );
    let both = slices.create.iter().chain(&slices.update);
    let hints: Vec<String> = both
        .flat_map(|slice| &slice.members)
        .map(|member| {
            member
                .hints
                .as_ref()
                .map_or_else(String::new, |hints| hints.zones.join(","))
        })
        .collect();
    assert_eq!(hints, row.hints);
    assert_eq!(word(&event.unwrap()), row.event);
}

fn word(event: &Event) -> &'static str {
    match event {
        Event::Enabled { .. } => "Enabled",
        Event::Disabled { trouble, .. } => match trouble {
            Trouble::Nodes => "Nodes",
            Trouble::TooFewEndpoints { .. } => "TooFewEndpoints",
            Trouble::Overload { .. } => "Overload",
            Trouble::EndpointWithoutZone => "EndpointWithoutZone",
            Trouble::NoLongerAsked => "NoLongerAsked",
        },
    }
}

fn check_nodes(row: &NodesCase) {
    let nodes: Vec<Node> = (row.cluster.iter().enumerate())
        .map(|(number, row)| {
            let mut node = node(number, &row.zone, row.cpu);
            node.ready = row.ready;
            if row.control_plane {
                let label = (
                    Arc::from("node-role.kubernetes.io/control-plane"),
                    Arc::from(""),
                );
                let labels = node
                    .labels
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone()));
                node.labels = labels.chain([label]).collect();
            }
            node
        })
        .collect();
    let zones = Zones::of(&nodes);
    let shares = zones.map(|zones| {
        let shares = zones
            .shares()
            .map(|(zone, share)| (zone.to_string(), share));
        shares.collect::<BTreeMap<_, _>>()
    });
    let expected = row.share.as_ref().map(|shares| {
        let shares = shares
            .iter()
            .map(|(zone, (part, all))| (zone.clone(), Ratio::new(*part, *all)));
        shares.collect()
    });
    assert_eq!(shares, expected);
}

fn check_moves(row: &MovesRow) {
    let quota = |(zone, desired): (&String, &f64)| {
        let quota = Quota {
            desired: *desired,
            most: 0,
        };
        (Arc::from(zone.as_str()), quota)
    };
    let allocation = Allocation(row.desired.iter().map(quota).collect());
    let expected = Moves {
        give: row.give.clone(),
        receive: row.receive.clone(),
    };
    assert_eq!(allocation.moves(&row.hinted), expected);
}

fn check_redistribute(row: &Redistribute) {
    let mut slices = Slices {
        create: slices(&row.slices),
        ..Slices::default()
    };
    let before = counts(&slices.create);
    let moves = Moves {
        give: row.give.clone(),
        receive: row.receive.clone(),
    };
    auto::redistribute(&mut slices, moves);
    let mut change = counts(&slices.create);
    for (zone, count) in before {
        *change.entry(zone).or_default() -= count;
    }
    assert_eq!(change, row.change);
}

fn check_existing(row: &Existing) {
    let quota = |(zone, most): (&Arc<str>, &i32)| {
        let quota = Quota {
            desired: 0.0,
            most: *most,
        };
        (Arc::clone(zone), quota)
    };
    let allocation = Allocation(row.most.iter().map(quota).collect());
    assert_eq!(
        auto::kept(&slice(&row.slice), &allocation, &row.already),
        row.counts
    );
}

fn check_ready(row: &ReadyTotal) {
    let slice = |(ready, unready): &(usize, usize)| {
        let ready = std::iter::repeat_n("a+".to_owned(), *ready);
        let unready = std::iter::repeat_n("a-".to_owned(), *unready);
        slice(&ready.chain(unready).collect::<Vec<_>>())
    };
    let slices = Slices {
        keep: row.slices.iter().map(slice).collect(),
        ..Slices::default()
    };
    assert_eq!(slices.ready(), row.total);
}

fn check_refused(row: &Refused) {
    let zones = zones(&row.cpu).unwrap();
    let refused = (1..=100).filter(|endpoints| Allocation::new(&zones, *endpoints).is_err());
    assert_eq!(refused.collect::<Vec<_>>(), row.endpoints);
}

fn wanted(word: &str) -> Wanted {
    match word {
        "Auto" => Wanted::Auto,
        "SameZone" => Wanted::SameZone,
        "SameNode" => Wanted::SameNode,
        "Nothing" => Wanted::Nothing,
        other => panic!("{other} is nothing one can want"),
    }
}

fn check_switches(row: &Switches) {
    let found = Wanted::of(
        row.older.as_deref(),
        row.newer.as_deref(),
        row.field.as_deref(),
    );
    assert_eq!(found, wanted(&row.wanted));
}

fn check_distribution(row: &Distribution) {
    let mut given = Slices {
        create: slices(&row.create),
        update: slices(&row.update),
        keep: slices(&row.keep),
    };
    let event = reconcile(wanted(&row.wanted), None, Family::V4, false, &mut given);
    assert_eq!(event, None);
    let written: Vec<Slice> = given.create.into_iter().chain(given.update).collect();
    assert_eq!(written, slices(&row.written));
    assert_eq!(given.keep, slices(&row.kept));
}

#[test]
fn a_slice_within_bounds_is_not_written_again() {
    let text = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let three = zones(&[("a".to_owned(), 1), ("b".to_owned(), 1)].into()).unwrap();
    let kept = slice(&text(&["a+=a", "b+=b"]));
    let mut given = Slices {
        keep: vec![kept.clone(), slice(&text(&["a+=c", "b+"]))],
        ..Slices::default()
    };
    assert_eq!(
        reconcile(Wanted::Auto, Some(&three), Family::V4, true, &mut given),
        None,
        "no news"
    );
    assert_eq!(given.keep, [kept]);
    assert_eq!(given.update, [slice(&text(&["a+=a", "b+=b"]))]);
}

#[test]
fn an_endpoint_without_a_zone_takes_all_hints_away() {
    let text = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let two = zones(&[("a".to_owned(), 1), ("b".to_owned(), 1)].into()).unwrap();
    let mut given = Slices {
        create: vec![slice(&text(&["a+", "b+", "+"]))],
        keep: vec![slice(&text(&["a+=a"]))],
        ..Slices::default()
    };
    let event = reconcile(Wanted::Auto, Some(&two), Family::V6, true, &mut given).unwrap();
    assert_eq!(word(&event), "EndpointWithoutZone");
    assert_eq!(
        (event.kind(), event.reason()),
        ("Warning", "TopologyAwareHintsDisabled")
    );
    assert_eq!(
        event.to_string(),
        "no topology aware hints: a ready endpoint has no zone, addressType IPv6"
    );
    assert!(given.keep.is_empty());
    assert!(counts(&given.create).is_empty() && counts(&given.update).is_empty());
}

#[test]
fn eleven_endpoints_in_three_equal_zones_overload_one() {
    let cpu: BTreeMap<String, u64> = ["a", "b", "c"].map(|zone| (zone.to_owned(), 4000)).into();
    let members: Vec<String> = ["a+"; 4]
        .iter()
        .chain(&["b+"; 4])
        .chain(&["c+"; 3])
        .map(ToString::to_string)
        .collect();
    let mut given = Slices {
        create: vec![slice(&members)],
        ..Slices::default()
    };
    let event = reconcile(
        Wanted::Auto,
        zones(&cpu).as_ref(),
        Family::V4,
        false,
        &mut given,
    )
    .unwrap();
    assert_eq!(word(&event), "Overload");
    assert!(counts(&given.create).is_empty());
}

#[test]
fn a_node_without_a_zone_or_cpu_makes_all_insufficient() {
    let fine = [node(1, "a", 1), node(2, "b", 1)];
    assert!(Zones::of(&fine).is_some());
    assert!(Zones::of(fine.iter().chain([&node(3, "", 1)])).is_none());
    assert!(Zones::of(fine.iter().chain([&node(3, "c", 0)])).is_none());
}

#[test]
fn an_annotation_that_is_gone_is_an_event_and_the_field_takes_over() {
    let mut given = Slices {
        keep: vec![slice(&["a+=b".to_owned()])],
        ..Slices::default()
    };
    let event = reconcile(Wanted::SameZone, None, Family::V4, true, &mut given).unwrap();
    assert_eq!(word(&event), "NoLongerAsked");
    assert_eq!(given.update, [slice(&["a+=a".to_owned()])]);
}

#[test]
fn same_node_names_the_node_and_the_zone() {
    let mut given = Slices {
        create: vec![slice(&["a+".to_owned(), "+".to_owned()])],
        ..Slices::default()
    };
    reconcile(Wanted::SameNode, None, Family::V4, false, &mut given);
    let expected = Hints {
        zones: vec!["a".into()],
        nodes: vec!["node-a".into()],
    };
    assert_eq!(given.create[0].members[0].hints, Some(expected));
    assert_eq!(given.create[0].members[1].hints, None);
}

/// 2, 5 and 5 endpoints in three equal zones of the table that compares ways to stay near.
#[test]
fn two_five_five_become_four_four_four_family_by_family() {
    let cpu: BTreeMap<String, u64> = ["a", "b", "c"].map(|zone| (zone.to_owned(), 1)).into();
    let endpoint = |zone: &str| Endpoint {
        address: std::net::IpAddr::from([10, 244, 0, 1]),
        node: None,
        zone: Some(zone.into()),
        ready: true,
        serving: true,
        terminating: false,
        hints: None,
    };
    let of_family = |family, zones: &[&str]| EndpointSlice {
        name: ObjectName::new("t", "x"),
        service: "s".into(),
        family,
        ports: Vec::new(),
        endpoints: zones.iter().map(|zone| endpoint(zone)).collect(),
    };
    let twelve = ["a", "a", "b", "b", "b", "b", "b", "c", "c", "c", "c", "c"];
    let mut given = [
        of_family(Family::V4, &twelve),
        of_family(Family::V6, &["a", "b"]),
    ];
    let events = write(Wanted::Auto, zones(&cpu).as_ref(), &mut given);
    assert_eq!(
        events.iter().map(word).collect::<Vec<_>>(),
        ["Enabled", "TooFewEndpoints"]
    );
    let mut counts = BTreeMap::new();
    for endpoint in &given[0].endpoints {
        let hints = endpoint.hints.as_ref().unwrap();
        *counts.entry(hints.zones[0].to_string()).or_insert(0) += 1;
    }
    assert_eq!(
        counts,
        [
            ("a".to_owned(), 4),
            ("b".to_owned(), 4),
            ("c".to_owned(), 4)
        ]
        .into()
    );
    assert!(
        given[1]
            .endpoints
            .iter()
            .all(|endpoint| endpoint.hints.is_none())
    );
}
