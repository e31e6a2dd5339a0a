//! Rules that the tables do not cover.

use std::collections::BTreeMap;

use super::*;

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
    let mut given = HintedSlices {
        keep: vec![kept.clone(), slice(&text(&["a+=c", "b+"]))],
        ..HintedSlices::default()
    };
    assert_eq!(
        reconcile(HintMode::Auto, Some(&three), Family::V4, true, &mut given),
        None,
        "no news"
    );
    assert_eq!(given.keep, [kept]);
    assert_eq!(given.update, [slice(&text(&["a+=a", "b+=b"]))]);
}

#[test]
fn an_endpoint_without_a_zone_removes_all_hints() {
    let text = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    let two = zones(&[("a".to_owned(), 1), ("b".to_owned(), 1)].into()).unwrap();
    let mut given = HintedSlices {
        create: vec![slice(&text(&["a+", "b+", "+"]))],
        keep: vec![slice(&text(&["a+=a"]))],
        ..HintedSlices::default()
    };
    let event = reconcile(HintMode::Auto, Some(&two), Family::V6, true, &mut given).unwrap();
    assert_eq!(event_name(&event), "EndpointWithoutZone");
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
    let mut given = HintedSlices {
        create: vec![slice(&members)],
        ..HintedSlices::default()
    };
    let event = reconcile(
        HintMode::Auto,
        zones(&cpu).as_ref(),
        Family::V4,
        false,
        &mut given,
    )
    .unwrap();
    assert_eq!(event_name(&event), "Overload");
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
fn a_removed_annotation_is_an_event_and_the_field_takes_over() {
    let mut given = HintedSlices {
        keep: vec![slice(&["a+=b".to_owned()])],
        ..HintedSlices::default()
    };
    let event = reconcile(HintMode::SameZone, None, Family::V4, true, &mut given).unwrap();
    assert_eq!(event_name(&event), "NoLongerRequested");
    assert_eq!(given.update, [slice(&["a+=a".to_owned()])]);
}

#[test]
fn same_node_names_the_node_and_the_zone() {
    let mut given = HintedSlices {
        create: vec![slice(&["a+".to_owned(), "+".to_owned()])],
        ..HintedSlices::default()
    };
    reconcile(HintMode::SameNode, None, Family::V4, false, &mut given);
    let expected = Hints {
        zones: vec!["a".into()],
        nodes: vec!["node-a".into()],
    };
    assert_eq!(given.create[0].members[0].hints, Some(expected));
    assert_eq!(given.create[0].members[1].hints, None);
}

/// 2, 5 and 5 endpoints in three equal zones, from the table that compares topology features.
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
        hostnames: BTreeMap::default(),
    };
    let twelve = ["a", "a", "b", "b", "b", "b", "b", "c", "c", "c", "c", "c"];
    let mut given = [
        of_family(Family::V4, &twelve),
        of_family(Family::V6, &["a", "b"]),
    ];
    let events = write(HintMode::Auto, zones(&cpu).as_ref(), &mut given);
    assert_eq!(
        events.iter().map(event_name).collect::<Vec<_>>(),
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
