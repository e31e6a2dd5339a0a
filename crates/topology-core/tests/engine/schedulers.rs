//! Weights and shares of each scheduler, compared with the kernel models of the oracle.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use topology_core::model::Protocol;
use topology_core::policy::Policy;
use topology_core::ratio::Ratio;
use topology_core::resolve::{Note, ResolvedServer};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::VirtualServerKey;

use crate::kernel_model::picks;
use crate::world::{World, ZONE, at, weighted};

/// `me` in zone a, with so many endpoints there and in zone b, and weights for both.
fn decide(scheduler: Scheduler, (near, far): (u8, u8), weights: (u32, u32)) -> ResolvedServer {
    let policy = Policy {
        scheduler: Some(scheduler),
        ..weighted(&[(ZONE, weights.0), ("*", weights.1)])
    };
    let near = (0..near).map(|number| at([10, 0, 0, number].into()).zone("a"));
    let far = (0..far).map(|number| at([10, 0, 1, number].into()).zone("b"));
    World::new("me")
        .node("me", &[(ZONE, "a")])
        .policy(policy)
        .endpoints(near.chain(far))
        .server()
}

fn reported(server: &ResolvedServer) -> Vec<Ratio> {
    let reals = server.server.real_servers.iter();
    let share = |address| {
        let mut endpoints = server.decision.endpoints.iter();
        let found = endpoints.find(|endpoint| endpoint.address == address);
        found.unwrap().share
    };
    reals.map(|real| share(real.address)).collect()
}

fn weights(server: &ResolvedServer) -> Vec<u32> {
    let reals = server.server.real_servers.iter();
    reals.map(|real| real.weight).collect()
}

fn destination(server: &ResolvedServer) -> Vec<IpAddr> {
    match server.server.key {
        VirtualServerKey::Address { address, .. } => vec![address],
        VirtualServerKey::FirewallMark { .. } => Vec::new(),
    }
}

fn near(server: &ResolvedServer) -> f64 {
    (server.decision.levels[0].achieved.to_f64() * 1_000.0).round() / 10.0
}

proptest! {
    #[test]
    fn reported_shares_are_those_of_the_kernels_algorithm(
        scheduler in proptest::sample::select(&Scheduler::ALL[..]),
        counts in (0..12_u8, 1..40_u8),
        asked in (1..100_u32, 1..100_u32),
    ) {
        let server = decide(scheduler, counts, asked);
        let weights = weights(&server);
        let picks = picks(scheduler, &weights, Protocol::Tcp, &destination(&server));
        let all = picks.iter().flatten().sum();
        for (reported, picks) in reported(&server).into_iter().zip(picks.into_iter().flatten()) {
            let off = reported.distance(Ratio::new(picks, all));
            // Only `twos` is random.
            let bound = if scheduler == Scheduler::Twos { Ratio::new(2, 100) } else { Ratio::ZERO };
            prop_assert!(off <= bound, "{scheduler} {weights:?}: {reported} and {picks} of {all}");
        }
    }

    #[test]
    fn mh_and_sh_round_no_weight_that_they_are_given(counts in (0..40_u8, 1..200_u8), asked in (1..100_u32, 1..100_u32)) {
        let mh = weights(&decide(Scheduler::Mh, counts, asked));
        prop_assert!(mh.iter().all(|weight| (1..=63).contains(weight)), "{mh:?}");
        let sh = weights(&decide(Scheduler::Sh, counts, asked));
        let sum: u32 = sh.iter().sum();
        let alike = sh.iter().all(|weight| *weight == 1);
        prop_assert!(alike || 256 % sum == 0, "{sh:?} sum up to {sum}");
    }

    #[test]
    fn under_sh_no_client_is_refused_in_any_drain(weights in proptest::collection::vec(0..6_u32, 1..20)) {
        let picks = picks(Scheduler::Sh, &weights, Protocol::Tcp, &[]).unwrap();
        let serves = weights.iter().any(|weight| *weight > 0);
        prop_assert_eq!(picks.iter().sum::<u64>(), if serves { 256 } else { 0 });
    }
}

#[test]
fn d12_mh_is_as_near_as_six_bits_allow_with_a_note() {
    let clamped = [Note::WeightClamped {
        scheduler: Scheduler::Mh,
    }];
    for (counts, asked, expected) in [
        ((1, 5), (99, 1), 92.7),
        ((1, 200), (90, 10), 25.8),
        ((1, 5), (90, 10), 90.0),
        ((4, 2), (50, 50), 50.0),
    ] {
        let server = decide(Scheduler::Mh, counts, asked);
        let off = (near(&server) - f64::from(asked.0)).abs() > 0.5;
        assert!(
            (near(&server) - expected).abs() < 2.0,
            "{} {expected}",
            near(&server)
        );
        assert_eq!(
            server.decision.notes == clamped,
            off,
            "{:?}",
            server.decision.notes
        );
    }
    assert!((near(&decide(Scheduler::Wrr, (1, 5), (99, 1))) - 99.0).abs() < 0.2);
}

#[test]
fn d12_sh_deals_out_whole_buckets() {
    let server = decide(Scheduler::Sh, (1, 5), (99, 1));
    // 99 % of 256 are 253.4, but each of the others has a bucket.
    let mut given = weights(&server);
    given.sort_unstable();
    assert_eq!(given, [1, 1, 1, 1, 1, 251]);
    assert!((near(&server) - 98.0).abs() < 0.1);
    let alike = decide(Scheduler::Sh, (3, 3), (50, 50));
    assert_eq!(weights(&alike), [1; 6]);
}

#[test]
fn d12_with_ignored_weights_the_levels_have_their_actual_shares() {
    for (scheduler, expected) in [
        (Scheduler::Rr, 25.0),
        (Scheduler::Lc, 25.0),
        (Scheduler::Wlc, 80.0),
    ] {
        let server = decide(scheduler, (1, 3), (80, 20));
        assert!(
            (near(&server) - expected).abs() < 0.1,
            "{scheduler}: {}",
            near(&server)
        );
    }
    let all = decide(Scheduler::Fo, (1, 3), (80, 20));
    assert!((near(&all) - 100.0).abs() < 0.1);
    let note = decide(Scheduler::Rr, (1, 3), (80, 20)).decision.notes;
    assert_eq!(
        note[0].to_string(),
        "some share is not met, the scheduler ignores weights; wrr keeps to them"
    );
}

#[test]
fn d12_wrr_with_its_weights_replaces_a_missing_scheduler() {
    let mut world = World::new("me").node("me", &[(ZONE, "a")]);
    world.me.missing = Arc::new(BTreeSet::from([Scheduler::Mh]));
    let policy = Policy {
        scheduler: Some(Scheduler::Mh),
        ..weighted(&[(ZONE, 99), ("*", 1)])
    };
    let near = std::iter::once(at([10, 0, 0, 0].into()).zone("a"));
    let far = (0..5).map(|number| at([10, 0, 1, number].into()).zone("b"));
    let server = world.policy(policy).endpoints(near.chain(far)).server();
    assert_eq!(server.server.scheduler, Scheduler::Wrr);
    assert_eq!(weights(&server).into_iter().max(), Some(450));
    let [note] = server.decision.notes.as_slice() else {
        panic!("{:?}", server.decision.notes)
    };
    assert_eq!(
        note.to_string(),
        "this node has no scheduler mh, wrr is used; load it: modprobe ip_vs_mh"
    );
}
