//! Measures the shares of 100,000 queries.

use std::collections::BTreeMap;

use crate::cluster_of::{Dns, headless};

const QUERIES: u32 = 100_000;

/// How often each address is first, and how often it is in an answer, in thousandths of the
/// queries of `clients` clients on n1 that ask in turn.
fn measure(annotations: &str, clients: u32) -> BTreeMap<String, (u32, u32)> {
    let mut dns = Dns::of(&headless(annotations));
    let mut counts = BTreeMap::<String, (u32, u32)>::new();
    for query in 0..QUERIES {
        let client = format!("10.244.1.{}", 100 + query % clients);
        for (at, address) in dns.addresses(&client).into_iter().enumerate() {
            let (first, any) = counts.entry(address).or_default();
            *first += u32::from(at == 0);
            *any += 1;
        }
    }
    for (first, any) in counts.values_mut() {
        (*first, *any) = (*first * 1_000 / QUERIES, *any * 1_000 / QUERIES);
    }
    counts
}

fn near(measured: u32, expected: u32) -> bool {
    measured.abs_diff(expected) <= 2
}

#[test]
fn levels_get_their_shares_however_a_client_uses_the_addresses() {
    let policy = "topology.ipvs-topo.io/weights: 'node=80,zone=15,*=5'";
    for clients in [1, 2, 7, 50] {
        let measured = measure(policy, clients);
        for (address, share) in [
            ("10.244.1.10", 800),
            ("10.244.2.10", 150),
            ("10.244.3.10", 50),
        ] {
            let (first, any) = measured[address];
            assert!(
                near(first, share) && near(any, share),
                "{clients}: {measured:?}"
            );
        }
    }
}

#[test]
fn each_endpoint_of_a_level_is_first_equally_often_and_in_every_answer() {
    for clients in [1, 3] {
        let measured = measure("", clients);
        assert_eq!(measured.len(), 3);
        for (first, any) in measured.values() {
            assert!(near(*first, 333) && *any == 1_000, "{measured:?}");
        }
    }
}

#[test]
fn one_query_of_each_client_has_the_shares_too() {
    let policy = "topology.ipvs-topo.io/weights: 'node=80,zone=15,*=5'";
    let mut dns = Dns::of(&headless(policy));
    let mut local = 0;
    for client in 0..20_000_u32 {
        let client = format!("fd00:1::{:x}", client + 1);
        let addresses = dns.addresses(&client);
        local += u32::from(addresses == ["10.244.1.10"]);
    }
    assert!((15_700..16_300).contains(&local), "{local} of 20000");
}
