//! The tables of the specification, from `tests/vectors/hints.json`: one test for each row, by its ID.

use serde::Deserialize;

use super::*;

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
    hinted: EndpointCounts,
    give: EndpointCounts,
    receive: EndpointCounts,
}

#[derive(Deserialize)]
struct Redistribute {
    id: String,
    slices: Vec<Vec<String>>,
    give: EndpointCounts,
    receive: EndpointCounts,
    change: EndpointCounts,
}

#[derive(Deserialize)]
struct Existing {
    id: String,
    slice: Vec<String>,
    most: EndpointCounts,
    already: EndpointCounts,
    counts: Option<EndpointCounts>,
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
    serde_json::from_str(include_str!("../../../tests/vectors/hints.json")).unwrap()
}

/// Defines a test for each row of a table, and one that finds rows without a test.
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

fn check_add(row: &Add) {
    let mut slices = HintedSlices {
        create: slices(&row.create),
        update: slices(&row.update),
        keep: Vec::new(),
    };
    let event = reconcile(
        HintMode::Auto,
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
    assert_eq!(event_name(&event.unwrap()), row.event);
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
    let expected = ZoneMoves {
        give: row.give.clone(),
        receive: row.receive.clone(),
    };
    assert_eq!(allocation.moves(&row.hinted), expected);
}

fn check_redistribute(row: &Redistribute) {
    let mut slices = HintedSlices {
        create: slices(&row.slices),
        ..HintedSlices::default()
    };
    let before = counts(&slices.create);
    let moves = ZoneMoves {
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
    let slices = HintedSlices {
        keep: row.slices.iter().map(slice).collect(),
        ..HintedSlices::default()
    };
    assert_eq!(slices.ready(), row.total);
}

fn check_refused(row: &Refused) {
    let zones = zones(&row.cpu).unwrap();
    let refused = (1..=100).filter(|endpoints| Allocation::new(&zones, *endpoints).is_err());
    assert_eq!(refused.collect::<Vec<_>>(), row.endpoints);
}

fn check_switches(row: &Switches) {
    let found = HintMode::of(
        row.older.as_deref(),
        row.newer.as_deref(),
        row.field.as_deref(),
    );
    assert_eq!(found, hint_mode(&row.wanted));
}

fn check_distribution(row: &Distribution) {
    let mut given = HintedSlices {
        create: slices(&row.create),
        update: slices(&row.update),
        keep: slices(&row.keep),
    };
    let event = reconcile(hint_mode(&row.wanted), None, Family::V4, false, &mut given);
    assert_eq!(event, None);
    let written: Vec<HintedSlice> = given.create.into_iter().chain(given.update).collect();
    assert_eq!(written, slices(&row.written));
    assert_eq!(given.keep, slices(&row.kept));
}
