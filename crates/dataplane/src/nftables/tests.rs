//! The printed transactions, and the comparison with nft's listing.

use std::net::IpAddr;

use topology_core::model::{Protocol, parse_range};

use super::diff::diff;
use super::observe::ObservedTable;
use super::*;

fn desired(cidrs: &[&str], vips: &[&str], own: &[&str], hairpin: &[&str]) -> DesiredTables {
    let addresses =
        |list: &[&str]| -> Vec<IpAddr> { list.iter().map(|ip| ip.parse().unwrap()).collect() };
    let ranges = cidrs.iter().map(|cidr| parse_range(cidr).unwrap());
    DesiredTables::default()
        .with(&CIDRS, ranges.map(Element::Range))
        .with(&VIPS, addresses(vips).into_iter().map(Element::Address))
        .with(&OWN, addresses(own).into_iter().map(Element::Address))
        .with(&HAIRPIN, addresses(hairpin).into_iter().map(Element::Pair))
}

fn silent(desired: DesiredTables) -> DesiredTables {
    let listener = Element::Listener("10.96.0.10".parse().unwrap(), Protocol::Tcp, 80);
    desired.with(&SILENT, [listener])
}

/// The text that nft gets.
fn script(held: &DesiredTables, desired: &DesiredTables) -> String {
    diff(held, desired).map_or_else(|| "nothing".to_owned(), |change| change.to_string())
}

#[test]
fn d3_a_dual_stack_node_gets_three_tables_in_one_transaction() {
    let target = desired(
        &["10.96.0.0/12", "fd00:10:96::/112"],
        &["203.0.113.7"],
        &["10.96.0.53"],
        &["10.244.1.2", "fd00:10:244:1::2"],
    );
    insta::assert_snapshot!(script(&DesiredTables::default(), &target));
}

#[test]
fn a_single_stack_node_gets_no_table_of_the_other_family() {
    let target = desired(&["fd00:10:96::/112"], &[], &[], &[]);
    insta::assert_snapshot!(script(&DesiredTables::default(), &target));
}

#[test]
fn d4_an_added_or_removed_pod_changes_elements_only() {
    let before = desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2", "10.244.1.3"]);
    let after = desired(
        &["10.96.0.0/12"],
        &["203.0.113.7"],
        &[],
        &["10.244.1.3", "10.244.1.4"],
    );
    insta::assert_snapshot!(script(&before, &after), @r"
    add element ip ipvs-topo vips { 203.0.113.7 }
    add element ip ipvs-topo hairpin { 10.244.1.4 . 10.244.1.4 }
    delete element ip ipvs-topo hairpin { 10.244.1.2 . 10.244.1.2 }
    add element arp ipvs-topo vips { 203.0.113.7 }
    ");
}

#[test]
fn a_frontend_that_starts_to_drop_is_one_element() {
    let before = desired(&["10.96.0.0/12"], &[], &[], &[]);
    let after = silent(before.clone());
    assert!(before.lacks_any_of(&after) && !after.lacks_any_of(&before));
    insta::assert_snapshot!(script(&before, &after), @"add element ip ipvs-topo silent { 10.96.0.10 . tcp . 80 }");
}

#[test]
fn equal_tables_need_no_process() {
    let same = desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2"]);
    assert!(diff(&same, &same.clone()).is_none());
}

#[test]
fn losing_the_last_address_of_a_family_removes_its_tables() {
    let before = desired(&[], &["203.0.113.7"], &[], &[]);
    let text = script(&before, &DesiredTables::default());
    assert!(text.contains("delete table ip ipvs-topo"), "{text}");
    assert!(!text.contains("chain"), "{text}");
}

#[test]
fn only_additions_must_precede_the_virtual_servers() {
    let small = desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2"]);
    let large = desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2", "10.244.1.3"]);
    assert!(small.lacks_any_of(&large));
    assert!(!large.lacks_any_of(&small));
}

/// `nft -j list table ip ipvs-topo` of nft 1.0.6 on Linux 6.18 after loading
/// the table of [`listed`], handles shortened to 1.
const LISTED: &str = include_str!("tests/listed-ip.json");

fn listed() -> Option<ObservedTable> {
    let target = silent(desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2"]));
    let table = target.table(TableFamily::Ip);
    table.as_ref().map(ObservedTable::from)
}

#[test]
fn nfts_listing_of_our_table_equals_the_desired_one() {
    let held = ObservedTable::parse(LISTED).unwrap();
    assert_eq!(Some(held), listed());
}

#[test]
fn pain_44_every_kind_of_tampering_makes_the_table_differ() {
    let target = listed();
    for (from, to) in [
        ("\"prio\": 150", "\"prio\": 151"),
        ("\"policy\": \"accept\"", "\"policy\": \"drop\""),
        ("\"10.244.1.2\"", "\"10.244.1.9\""),
        ("\"len\": 12", "\"len\": 13"),
        ("\"tcp\", 80", "\"tcp\", 81"),
        ("a Service range [", "a Service range [0"),
        ("\"chain\": \"unclaimed\"", "\"chain\": \"input\""),
        ("{\"set\":", "{\"map\":"),
    ] {
        assert!(LISTED.contains(from), "{from}");
        let held = ObservedTable::parse(&LISTED.replace(from, to)).unwrap();
        assert_ne!(Some(held), target, "{from} -> {to}");
    }
}

#[test]
fn foreign_output_never_equals_a_desired_table() {
    assert_eq!(
        ObservedTable::parse("{}").unwrap(),
        ObservedTable::default()
    );
    assert!(ObservedTable::parse("not json").is_err());
}

#[test]
fn an_endpoint_that_is_added_and_removed_leaves_the_tables_unchanged() {
    let before = desired(&["10.96.0.0/12"], &[], &[], &[]);
    let pods: Vec<IpAddr> = vec!["10.244.1.2".parse().unwrap()];
    let came = EndpointDelta {
        added: pods.clone(),
        removed: Vec::new(),
    };
    let left = EndpointDelta {
        added: Vec::new(),
        removed: pods,
    };
    let mut tables = before.clone();
    assert_eq!(tables.missing_of(&came), came);
    tables.apply(&came);
    assert_eq!(
        tables,
        desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2"])
    );
    assert!(tables.missing_of(&came).is_empty());
    assert_eq!(tables.missing_of(&left), left);
    tables.apply(&left);
    assert_eq!(tables, before);
}
