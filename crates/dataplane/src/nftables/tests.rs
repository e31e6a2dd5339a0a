//! The printed transactions, and the comparison with nft's listing.

use std::collections::BTreeSet;
use std::net::IpAddr;

use topology_core::model::{Protocol, parse_range};

use super::apply::as_desired;
use super::diff::{define, diff};
use super::elements::transactions;
use super::observe::ObservedTable;
use super::*;

fn desired(cidrs: &[&str], vips: &[&str], own: &[&str], hairpin: &[&str]) -> DesiredTables {
    let addresses =
        |list: &[&str]| -> Vec<IpAddr> { list.iter().map(|ip| ip.parse().unwrap()).collect() };
    let ranges = cidrs.iter().map(|cidr| parse_range(cidr).unwrap());
    DesiredTables::default()
        .with(SetId::Cidrs, ranges.map(Element::Range))
        .with(
            SetId::Vips,
            addresses(vips).into_iter().map(Element::Address),
        )
        .with(SetId::Own, addresses(own).into_iter().map(Element::Address))
        .with(
            SetId::Hairpin,
            addresses(hairpin).into_iter().map(Element::Pair),
        )
}

fn silent(desired: DesiredTables) -> DesiredTables {
    desired.with(SetId::Silent, [listener("10.96.0.10")])
}

fn listener(ip: &str) -> Element {
    Element::Listener(ip.parse().unwrap(), Protocol::Tcp, 80)
}

fn source_range(ip: &str, range: &str) -> Element {
    Element::SourceRange(
        ip.parse().unwrap(),
        Protocol::Tcp,
        80,
        parse_range(range).unwrap(),
    )
}

fn mark(ip: &str, mark: u32) -> Element {
    Element::Mark(ip.parse().unwrap(), Protocol::Tcp, 80, mark)
}

/// Elements in every set.
fn full() -> DesiredTables {
    let tables = desired(
        &["10.96.0.0/12"],
        &["203.0.113.7"],
        &["10.96.0.53"],
        &["10.244.1.2"],
    );
    let inside = ["10.244.0.0/16", "192.168.1.1/32"].map(|range| parse_range(range).unwrap());
    let vip = "203.0.113.7";
    silent(tables)
        .with(SetId::Served, [listener("10.96.0.10")])
        .with(SetId::Masquerade, [listener("192.168.1.1")])
        .with(SetId::Inside, inside.map(Element::Range))
        .with(SetId::DropOutside, [listener("203.0.113.8")])
        .with(SetId::Firewalled, [listener(vip)])
        .with(SetId::Health, [listener("203.0.113.10")])
        .with(
            SetId::SourceRanges,
            ["198.51.100.0/24", "198.51.100.7/32", "0.0.0.0/0"]
                .map(|range| source_range(vip, range)),
        )
        .with(
            SetId::Marks,
            [mark(vip, 0x1000), mark("203.0.113.9", 0x8000_0001)],
        )
}

#[test]
fn new_tables_have_their_ranges_at_once_and_get_all_other_elements() {
    let tables = full();
    let text = define(&tables).to_string();
    assert!(text.contains("elements = { 10.96.0.0/12 }"), "{text}");
    assert!(text.contains("@source-ranges-24 return"), "{text}");
    let elements = tables.single_elements();
    for (set, element) in &elements {
        assert!(!text.contains(&element.to_string()), "{set} {element}");
    }
    let ranges = ["10.96.0.0/12", "10.244.0.0/16", "192.168.1.1/32"];
    let ranges = ranges.map(|range| Element::Range(parse_range(range).unwrap()));
    let intervals = DesiredTables::default()
        .with(SetId::Cidrs, [ranges[0]])
        .with(SetId::Inside, [ranges[1], ranges[2]]);
    let all = elements.into_iter();
    let all = all.fold(intervals, |tables, (set, element)| {
        tables.with(set, [element])
    });
    assert_eq!(all, tables);

    let v4_alone = desired(&["10.96.0.0/12"], &[], &[], &["fd00::1"]);
    assert_eq!(v4_alone.single_elements(), [], "there is no table for it");
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
    delete element ip ipvs-topo hairpin { 10.244.1.2 . 10.244.1.2 }
    add element ip ipvs-topo hairpin { 10.244.1.4 . 10.244.1.4 }
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

#[test]
fn pain_44_an_element_more_less_or_with_another_value_makes_the_table_differ() {
    let observed = |tables: DesiredTables| {
        let table = tables.table(TableFamily::Ip);
        table.as_ref().map(ObservedTable::from)
    };
    let range = |text: &str| Element::Range(parse_range(text).unwrap());
    let ip: IpAddr = "192.0.2.1".parse().unwrap();
    for (set, element) in [
        (SetId::Cidrs, range("192.0.2.0/24")),
        (SetId::Vips, Element::Address(ip)),
        (SetId::Hairpin, Element::Pair(ip)),
        (SetId::Silent, listener("192.0.2.1")),
        (SetId::Inside, range("192.0.2.1/32")),
        (
            SetId::SourceRanges,
            source_range("192.0.2.1", "198.51.100.0/24"),
        ),
        (SetId::Marks, mark("192.0.2.1", 1)),
    ] {
        let more = full().with(set, [element]);
        assert_ne!(observed(more.clone()), observed(full()), "{element:?}");
        let mut less = more;
        less.remove(set, &element);
        assert_eq!(observed(less), observed(full()), "{element:?}");
    }
    let mut other = full();
    other.remove(SetId::Marks, &mark("203.0.113.7", 0x1000));
    let other = other.with(SetId::Marks, [mark("203.0.113.7", 0x1001)]);
    assert_ne!(observed(other), observed(full()));
}

fn added(elements: &[SetElement]) -> ElementDelta {
    ElementDelta {
        added: elements.to_vec(),
        ..ElementDelta::default()
    }
}

fn removed(elements: &[SetElement]) -> ElementDelta {
    ElementDelta {
        removed: elements.to_vec(),
        ..ElementDelta::default()
    }
}

#[test]
fn an_element_that_is_added_and_removed_leaves_the_tables_unchanged() {
    let before = desired(&["10.96.0.0/12"], &[], &[], &[]);
    let pod = Element::Pair("10.244.1.2".parse().unwrap());
    let elements = [
        (SetId::Hairpin, pod),
        (SetId::Masquerade, listener("192.168.1.1")),
        (SetId::Silent, listener("10.96.0.10")),
    ];
    let mut tables = before.clone();
    assert_eq!(tables.missing_of(&added(&elements)), added(&elements));
    tables.apply(&added(&elements));
    let after = silent(desired(&["10.96.0.0/12"], &[], &[], &["10.244.1.2"]))
        .with(SetId::Masquerade, [listener("192.168.1.1")]);
    assert_eq!(tables, after);
    assert!(tables.missing_of(&added(&elements)).is_empty());
    assert_eq!(tables.missing_of(&removed(&elements)), removed(&elements));
    tables.apply(&removed(&elements));
    assert_eq!(tables, before);
}

#[test]
fn intervals_and_whole_tables_are_no_single_elements() {
    let tables = desired(&["10.96.0.0/12"], &[], &[], &[]);
    let range = (
        SetId::Cidrs,
        Element::Range(parse_range("10.0.0.0/8").unwrap()),
    );
    assert!(!tables.can_apply(&added(&[range])));
    let port = (SetId::Masquerade, listener("192.168.1.1"));
    assert!(tables.can_apply(&added(&[port])));
    // IPv6 has no table yet, and gets none for a pod.
    let port = (SetId::Masquerade, listener("fd00::1"));
    assert!(!tables.can_apply(&added(&[port])));
    let pod = (SetId::Hairpin, Element::Pair("fd00::1".parse().unwrap()));
    assert!(tables.can_apply(&added(&[pod])));
}

#[test]
fn the_last_element_that_needs_a_table_is_no_single_element() {
    let [one, other] = ["fd00::1", "fd00::2"].map(|ip| (SetId::Masquerade, listener(ip)));
    let mut tables = desired(&["10.96.0.0/12"], &[], &[], &[]);
    tables.apply(&added(&[one, other]));
    assert!(tables.can_apply(&removed(&[one])) && tables.can_apply(&removed(&[other])));
    assert!(!tables.can_apply(&removed(&[one, other])));
    let replaced = ElementDelta {
        added: vec![(SetId::Masquerade, listener("fd00::3"))],
        ..removed(&[one, other])
    };
    assert!(tables.can_apply(&replaced));
}

#[test]
fn rules_and_sets_for_clients_outside_of_the_cluster() {
    let table = full().table(TableFamily::Ip).unwrap();
    insta::assert_snapshot!(table.to_string());
}

#[test]
fn a_prefix_length_that_is_new_adds_a_set_and_a_rule() {
    let before = desired(&["10.96.0.0/12"], &[], &[], &[]).with(
        SetId::SourceRanges,
        [source_range("10.96.0.10", "10.1.0.0/16")],
    );
    let after = before.clone().with(
        SetId::SourceRanges,
        [source_range("10.96.0.10", "10.1.2.0/24")],
    );
    insta::assert_snapshot!(script(&before, &after));
    insta::assert_snapshot!(script(&after, &before));
}

#[test]
fn a_range_that_changes_replaces_the_elements_of_its_set() {
    let before = desired(&["10.96.0.0/12"], &["203.0.113.7"], &[], &[]);
    let after = desired(
        &["10.96.0.0/16", "10.100.0.0/16"],
        &["203.0.113.7"],
        &[],
        &[],
    );
    insta::assert_snapshot!(script(&before, &after), @r"
    flush set ip ipvs-topo cidrs
    add element ip ipvs-topo cidrs { 10.96.0.0/16, 10.100.0.0/16 }
    flush set arp ipvs-topo cidrs
    add element arp ipvs-topo cidrs { 10.96.0.0/16, 10.100.0.0/16 }
    ");
}

#[test]
fn a_mark_that_changes_replaces_the_old_one() {
    let tables = desired(&["10.96.0.0/12"], &[], &[], &[]);
    let [old, new] = [7, 8].map(|number| mark("192.168.1.1", number));
    let [before, after] = [old, new].map(|mark| tables.clone().with(SetId::Marks, [mark]));
    insta::assert_snapshot!(script(&before, &after), @r"
    delete element ip ipvs-topo marks { 192.168.1.1 . tcp . 80 : 0x00000007 }
    add element ip ipvs-topo marks { 192.168.1.1 . tcp . 80 : 0x00000008 }
    ");
    assert!(before.contains(SetId::Marked, &listener("192.168.1.1")));
    let delta = ElementDelta {
        removed: vec![(SetId::Marks, old)],
        ..added(&[(SetId::Marks, new)])
    };
    assert!(before.can_apply(&delta));
    assert_eq!(before.replaced_by(&delta.added), [(SetId::Marks, old)]);
    assert_eq!(before.missing_of(&delta), added(&[(SetId::Marks, new)]));
    for delta in [&delta, &before.missing_of(&delta)] {
        let mut tables = before.clone();
        tables.apply(delta);
        assert_eq!(tables, after);
    }
    let mut tables = after;
    tables.apply(&removed(&[(SetId::Marks, new)]));
    assert_eq!(tables, desired(&["10.96.0.0/12"], &[], &[], &[]));
}

/// Source ranges of two prefix lengths, of which the second is an addition.
fn two_lengths() -> [(DesiredTables, SetElement); 2] {
    let tables = desired(&["10.96.0.0/12"], &[], &[], &[]);
    let [first, second] = ["10.1.0.0/16", "10.1.2.0/31"]
        .map(|range| (SetId::SourceRanges, source_range("10.96.0.10", range)));
    let one = tables.with(first.0, [first.1]);
    let two = one.clone().with(second.0, [second.1]);
    [(one, first), (two, second)]
}

/// What the kernel has, in the order of the families.
fn seen(tables: &DesiredTables) -> Vec<Option<ObservedTable>> {
    let families = TableFamily::ALL.into_iter();
    families
        .map(|family| tables.table(family).as_ref().map(ObservedTable::from))
        .collect()
}

#[test]
fn d13_a_prefix_length_that_was_in_use_changes_by_single_elements() {
    let [(one, _), (two, second)] = two_lengths();
    let lengths: BTreeSet<_> = two.used_lengths().collect();
    let mut held = two.clone().keeping(lengths.clone());
    assert_eq!(seen(&held), seen(&two));
    for _ in 0..2 {
        assert!(held.can_apply(&removed(&[second])));
        held.apply(&removed(&[second]));
        let wanted = one.clone().keeping(lengths.clone());
        assert!(diff(&held, &wanted).is_none(), "the empty set stays");
        assert!(!held.contains(second.0, &second.1));
        assert_ne!(seen(&held), seen(&one));
        assert!(held.can_apply(&added(&[second])));
        held.apply(&added(&[second]));
        assert_eq!(seen(&held), seen(&two));
    }
    let v6 = (SetId::SourceRanges, source_range("fd00::10", "fd00::/31"));
    assert!(!held.can_apply(&added(&[v6])), "a set of another table");
}

#[test]
fn d13_an_empty_set_of_a_prefix_length_is_no_difference_for_the_agent_that_left_it() {
    let [(one, first), (two, _)] = two_lengths();
    let lengths: BTreeSet<_> = two.used_lengths().collect();
    let kept = one.clone().keeping(lengths.clone());
    let held = as_desired(&seen(&kept), &one).unwrap();
    assert!(diff(&held, &kept).is_none());
    // The next agent removes it without the other sets.
    let fresh = one.clone().keeping(one.used_lengths().collect());
    insta::assert_snapshot!(script(&held, &fresh));
    // Any other difference is one.
    let mut other = kept.clone();
    other.remove(first.0, &first.1);
    assert!(as_desired(&seen(&other), &one).is_none());
    assert!(as_desired(&seen(&two), &one).is_none());
    assert!(as_desired(&seen(&one), &two).is_none());
    // A set that is missing is added.
    let held = as_desired(&seen(&one), &one).unwrap();
    let script = script(&held, &kept);
    assert!(
        script.contains("add set ip ipvs-topo source-ranges-31"),
        "{script}"
    );
}

#[test]
fn a_new_agent_keeps_no_prefix_length_but_those_in_use() {
    let [(one, _), _] = two_lengths();
    let fresh = one.clone().keeping(one.used_lengths().collect());
    assert_eq!(
        define(&fresh).to_string(),
        define(&one).to_string(),
        "the same tables for the same input"
    );
}

#[test]
fn a_prefix_length_that_comes_or_goes_is_no_single_element() {
    let [one, other] = ["10.1.0.0/16", "10.2.0.0/16"]
        .map(|range| (SetId::SourceRanges, source_range("10.96.0.10", range)));
    let mut tables = desired(&["10.96.0.0/12"], &[], &[], &[]);
    assert!(!tables.can_apply(&added(&[one])));
    tables.apply(&added(&[one]));
    assert!(tables.can_apply(&added(&[other])));
    assert!(!tables.can_apply(&removed(&[one])));
    let moved = ElementDelta {
        added: vec![other],
        ..removed(&[one])
    };
    assert!(tables.can_apply(&moved));
    let v6 = (SetId::SourceRanges, source_range("fd00::10", "fd00::/16"));
    assert!(!tables.can_apply(&added(&[v6])), "a set of another table");
}

fn clients(local_pods: LocalPods, masquerade_v4: Masquerade) -> RuleOptions {
    RuleOptions {
        local_pods,
        masquerade_v4,
        ..RuleOptions::default()
    }
}

/// The rules that differ from those without detection of local pods, without their comments.
fn rules_about_clients(options: RuleOptions) -> String {
    let usual = full().table(TableFamily::Ip).unwrap().to_string();
    let table = full().with_options(options).table(TableFamily::Ip).unwrap();
    let table = table.to_string();
    let added = table.lines().filter(|line| !usual.contains(line));
    let removed = usual.lines().filter(|line| !table.contains(line));
    let text = |sign: char, line: &str| {
        let rule = line.split(" comment ").next().unwrap_or(line);
        format!("{sign} {}\n", rule.trim())
    };
    let added = added.map(|line| text('+', line));
    added.chain(removed.map(|line| text('-', line))).collect()
}

#[test]
fn kp_it_10_connections_to_cluster_ips_are_masqueraded_by_two_rules_without_an_element() {
    let links = Links::WithPrefix("veth".parse().unwrap());
    let links = LocalPods::ByLink(links);
    let by_source = clients(LocalPods::BySource, Masquerade::NotLocal);
    insta::assert_snapshot!(rules_about_clients(by_source), @r#"
    + meta l4proto tcp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + meta l4proto udp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + meta l4proto sctp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + oif != "lo" ct original ip daddr @cidrs ct original ip saddr != @inside masquerade fully-random
    + oif != "lo" ct original ip daddr @vips ct original ip saddr != @inside masquerade fully-random
    "#);
    let everything = clients(LocalPods::BySource, Masquerade::Everything);
    insta::assert_snapshot!(rules_about_clients(everything), @r#"
    + meta l4proto tcp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + meta l4proto udp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + meta l4proto sctp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + oif != "lo" ct original ip daddr @cidrs masquerade fully-random
    + oif != "lo" ct original ip daddr @vips masquerade fully-random
    "#);
    let by_link = clients(links, Masquerade::NotLocal);
    insta::assert_snapshot!(rules_about_clients(by_link), @r#"
    + meta l4proto tcp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + meta l4proto udp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + meta l4proto sctp ct original ip daddr . meta l4proto . ct original proto-dst @marked accept
    + oif != "lo" ct original ip daddr @cidrs iifname != "veth*" masquerade fully-random
    + oif != "lo" ct original ip daddr @vips iifname != "veth*" masquerade fully-random
    + iifname "veth*" accept
    - meta l4proto tcp ct original ip daddr . meta l4proto . ct original proto-dst @marked ct original ip saddr @inside ip daddr . ip daddr != @hairpin update @same-link { iif . iif } iif . oif @same-link masquerade fully-random
    - meta l4proto udp ct original ip daddr . meta l4proto . ct original proto-dst @marked ct original ip saddr @inside ip daddr . ip daddr != @hairpin update @same-link { iif . iif } iif . oif @same-link masquerade fully-random
    - meta l4proto sctp ct original ip daddr . meta l4proto . ct original proto-dst @marked ct original ip saddr @inside ip daddr . ip daddr != @hairpin update @same-link { iif . iif } iif . oif @same-link masquerade fully-random
    - ip saddr @inside accept
    - ct original ip saddr @inside accept
    - ct original ip saddr @inside accept
    "#);
}

#[test]
fn changed_rules_about_clients_replace_the_tables() {
    let before = full();
    let changed = clients(LocalPods::BySource, Masquerade::NotLocal);
    let after = full().with_options(changed);
    assert!(before.lacks_any_of(&after));
    let script = script(&before, &after);
    assert!(script.contains("delete table ip ipvs-topo"), "{script}");
    assert!(diff(&after, &after).is_none());
}

#[test]
fn d2_without_the_rules_for_arp_there_is_no_table_and_elements_are_not_sent_to_it() {
    let answered = RuleOptions {
        arp: ArpRequests::Answered,
        ..RuleOptions::default()
    };
    let tables = full().with_options(answered);
    assert!(tables.table(TableFamily::Arp).is_none());
    assert!(tables.table(TableFamily::Ip).is_some());
    let script = script(&full(), &tables);
    assert!(script.contains("delete table arp ipvs-topo\n"), "{script}");
    assert!(!script.contains("table arp ipvs-topo {"), "{script}");
    let vip = Element::Address("203.0.113.9".parse().unwrap());
    let delta = added(&[(SetId::Vips, vip)]);
    let messages = |held: &DesiredTables| -> Vec<u32> {
        let transactions = transactions(held, &delta);
        transactions.map(|each| each.unwrap().count()).collect()
    };
    assert_eq!((messages(&full()), messages(&tables)), (vec![2], vec![1]));
}
