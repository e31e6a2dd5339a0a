//! Many load balancer addresses with source ranges: a change costs what it changes (D1).

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::agent::{Node, kernel};
use crate::lab::{Lab, SystemCalls, sh, wait_within};
use crate::yaml::{External, NODES, slice, web};

/// The prefix lengths of the ranges of each Service.
const LENGTHS: [u32; 5] = [16, 20, 24, 28, 32];
/// The guest is emulated.
const LONG: Duration = Duration::from_secs(200);

/// An address of the `number`th Service: its cluster IP and its load balancer address.
fn addresses(number: u32) -> [String; 2] {
    [[10, 96, 16, 0], [198, 18, 0, 0]].map(|first| {
        let first = Ipv4Addr::from(first).to_bits();
        Ipv4Addr::from_bits(first + number).to_string()
    })
}

/// A range of the length `bits`; ranges of Services may overlap.
fn range(number: u32, bits: u32) -> String {
    let first = Ipv4Addr::new(100, 64, 0, 0).to_bits() + number * 256;
    let network = Ipv4Addr::from_bits(first & (u32::MAX << (32 - bits)));
    format!("{network}/{bits}")
}

/// The `number`th Service; `moved` replaces its range of 24 bits.
fn service(number: u32, moved: Option<&str>) -> String {
    let [cluster_ip, vip] = addresses(number);
    let of_length = |bits| match moved {
        Some(range) if bits == 24 => range.to_owned(),
        _ => range(number, bits),
    };
    let ranges = LENGTHS.map(of_length);
    let external = External {
        ingress: &[&vip],
        ranges: &ranges.each_ref().map(String::as_str),
        ..External::default()
    };
    external.yaml(&web(&format!("web-{number}"), &[&cluster_ip]))
}

mod alone {
    #[test]
    fn d1_one_range_of_1_000_services_with_5_each_is_two_elements_and_no_process() {
        super::one_range_is_two_elements_and_no_process(1_000);
    }
}

mod storm {
    mod alone {
        #[test]
        fn d1_one_range_of_10_000_services_with_5_each_is_two_elements_and_no_process() {
            super::super::one_range_is_two_elements_and_no_process(10_000);
        }
    }
}

fn one_range_is_two_elements_and_no_process(services: u32) {
    let _lab = Lab::new();
    let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12", "--check-period", "1h"]);
    let last = services - 1;
    let others: String = (0..last).map(|number| service(number, None)).collect();
    node.write("nodes.yaml", NODES);
    node.write("others.yaml", &others);
    node.write("last.yaml", &service(last, None));
    let endpoints = slice(
        &format!("web-{last}"),
        "web",
        &[("TCP", 80, 8080)],
        &["10.244.1.2 n1"],
    );
    node.write("slice.yaml", &endpoints);
    node.launch(&[]);
    wait_within(LONG, "the first pass", || {
        node.log().contains("first pass done")
    });
    let servers = || {
        kernel()
            .iter()
            .filter(|line| line.starts_with("-A "))
            .count()
    };
    wait_within(LONG, "virtual servers with source ranges", || {
        servers() == 2 * services as usize
    });
    assert_eq!(ranges().len(), 5 * services as usize);

    let state = || (kernel(), node.childrens_faults());
    let (before, lists) = (state(), ranges());
    let [_, vip] = addresses(last);
    let old = range(last, 24);
    let element = |network: &str| format!("{vip} . tcp . 80 . {network}");
    let calls = SystemCalls::of(node.id(), "sendto,sendmsg");
    node.write("last.yaml", &service(last, Some("192.0.2.0/24")));
    let (new, old) = (element("192.0.2.0/24"), element(&old));
    wait_within(LONG, "the change", || {
        let held = ranges_of(24);
        held.contains(&new) && !held.contains(&old)
    });
    let now = ranges();
    let missing: Vec<_> = lists.difference(&now).collect();
    assert_eq!(missing, [&old]);
    let added: Vec<_> = now.difference(&lists).collect();
    assert_eq!(added, [&new]);
    assert_eq!(state(), before);
    // All elements are more than a hundred kilobytes.
    let bytes = sent(&calls);
    assert!((100..4_000).contains(&bytes), "{bytes}");
}

/// All elements of all source ranges, with the prefix length of their set.
fn ranges() -> BTreeSet<String> {
    LENGTHS.into_iter().flat_map(ranges_of).collect()
}

fn ranges_of(bits: u32) -> Vec<String> {
    let list = sh(&format!("nft list set ip ipvs-topo source-ranges-{bits}"));
    let words = list.split([',', '{', '}', '\n']).map(str::trim);
    let elements = words.filter(|word| word.contains(" . tcp . "));
    elements.map(|word| format!("{word}/{bits}")).collect()
}

/// The bytes that these calls have sent to the kernel and to others.
fn sent(calls: &SystemCalls) -> u64 {
    let calls = calls.so_far();
    let results = calls.lines().filter_map(|line| line.rsplit_once(" = "));
    results
        .filter_map(|(_, result)| result.parse::<u64>().ok())
        .sum()
}
