//! Weights and shares under each scheduler, against a model of the kernel that goes through its tables bucket by bucket
//! and through its lists connection by connection (`net/netfilter/ipvs/ip_vs_*.c`).

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use topology_core::policy::Policy;
use topology_core::ratio::Ratio;
use topology_core::resolve::{Note, ResolvedServer};
use topology_core::scheduler::Scheduler;

use crate::world::{World, ZONE, at, weighted};

/// What a kernel's list holds: the last that came is the first.
struct List {
    weights: Vec<u32>,
    connections: Vec<u64>,
}

impl List {
    fn of(weights: &[u32]) -> Self {
        Self {
            weights: weights.iter().rev().copied().collect(),
            connections: vec![0; weights.len()],
        }
    }

    /// One new connection: the first of those whose load for its weight is smallest.
    fn connect(&mut self, load: impl Fn(u64, u64) -> (u64, u64)) {
        let mut least: Option<(usize, (u64, u64))> = None;
        for (at, (weight, connections)) in self.weights.iter().zip(&self.connections).enumerate() {
            if *weight == 0 {
                continue;
            }
            let (load, by) = load(*connections, u64::from(*weight));
            let lighter = |(_, (least, than)): &(usize, (u64, u64))| load * than < least * by;
            if least.as_ref().is_none_or(lighter) {
                least = Some((at, (load, by)));
            }
        }
        if let Some((at, _)) = least {
            self.connections[at] += 1;
        }
    }

    fn shares(mut counts: Vec<u64>) -> Vec<f64> {
        counts.reverse();
        let all: u64 = counts.iter().sum();
        let share = |own: u64| Ratio::new(own, all).to_f64();
        counts.into_iter().map(share).collect()
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Maglev: every real server has a permutation of the table, and in turn takes its next free places.
fn mh(weights: &[u32]) -> Vec<f64> {
    const TABLE: usize = 4_093;
    let list: Vec<u32> = weights.iter().rev().copied().collect();
    let common = list.iter().copied().fold(0, gcd);
    if common == 0 {
        return vec![0.0; list.len()];
    }
    let bits = |number: u32| 32 - number.leading_zeros();
    let shift = bits(list.iter().max().unwrap() / common).saturating_sub(6);
    let mut places: Vec<usize> = (0..list.len())
        .map(|at| at * 2_654_435_761 % TABLE)
        .collect();
    let skip = |at: usize| at * 40_503 % (TABLE - 1) + 1;
    let mut table = vec![None; TABLE];
    let mut filled = 0;
    'full: loop {
        for (at, weight) in list.iter().enumerate() {
            let turns = match (weight / common) >> shift {
                0 => u32::from(*weight != 0),
                turns => turns,
            };
            for _ in 0..turns {
                while table[places[at]].is_some() {
                    places[at] = (places[at] + skip(at)) % TABLE;
                }
                table[places[at]] = Some(at);
                filled += 1;
                if filled == TABLE {
                    break 'full;
                }
            }
        }
    }
    let mut counts = vec![0; list.len()];
    table.into_iter().flatten().for_each(|at| counts[at] += 1);
    List::shares(counts)
}

/// Source hashing: 256 buckets, dealt out in order; from a bucket that does not serve one goes on.
fn sh(weights: &[u32]) -> Vec<f64> {
    let list: Vec<u32> = weights.iter().rev().copied().collect();
    let mut buckets = [0; 256];
    let (mut at, mut dealt) = (0, 0);
    for bucket in &mut buckets {
        *bucket = at;
        dealt += 1;
        if dealt >= list[at] {
            (at, dealt) = ((at + 1) % list.len(), 0);
        }
    }
    let mut counts = vec![0; list.len()];
    for hash in 0..256 {
        let mut places = std::iter::once(hash).chain((0..256).map(|offset| offset + 2 * hash));
        let found = places.find(|place| list[buckets[place % 256]] > 0);
        if let Some(place) = found {
            counts[buckets[place % 256]] += 1;
        }
    }
    List::shares(counts)
}

/// Shares after so many connections that none of them ended.
fn connected(weights: &[u32], load: impl Fn(u64, u64) -> (u64, u64)) -> Vec<f64> {
    let cycle: u32 = weights.iter().sum();
    let mut list = List::of(weights);
    for _ in 0..cycle.max(1) * 20 {
        list.connect(&load);
    }
    List::shares(list.connections)
}

/// What the kernel does over TCP.
fn model(scheduler: Scheduler, weights: &[u32]) -> Vec<f64> {
    match scheduler {
        Scheduler::Mh => mh(weights),
        Scheduler::Sh => sh(weights),
        Scheduler::Wlc => connected(weights, |own, weight| (own, weight)),
        Scheduler::Sed => connected(weights, |own, weight| (own + 1, weight)),
        Scheduler::Nq => connected(weights, |own, weight| {
            (if own == 0 { 0 } else { own + 1 }, weight)
        }),
        Scheduler::Lc => connected(weights, |own, _| (own, 1)),
        Scheduler::Fo => connected(weights, |_, weight| (1, weight)),
        _ => {
            let mut counts = vec![0; weights.len()];
            let order = topology_core::quantise::wrr(weights);
            let cycle: u32 = weights.iter().sum();
            order.take(cycle as usize).for_each(|at| counts[at] += 1);
            counts.reverse();
            List::shares(counts)
        }
    }
}

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

fn reported(server: &ResolvedServer) -> Vec<f64> {
    let reals = server.server.real_servers.iter();
    let share = |address| {
        let mut endpoints = server.decision.endpoints.iter();
        let found = endpoints.find(|endpoint| endpoint.address == address);
        found.unwrap().share.to_f64()
    };
    reals.map(|real| share(real.address)).collect()
}

fn weights(server: &ResolvedServer) -> Vec<u32> {
    let reals = server.server.real_servers.iter();
    reals.map(|real| real.weight).collect()
}

fn near(server: &ResolvedServer) -> f64 {
    (server.decision.levels[0].achieved.to_f64() * 1_000.0).round() / 10.0
}

fn modelled() -> impl Strategy<Value = Scheduler> {
    proptest::sample::select(vec![
        Scheduler::Wrr,
        Scheduler::Wlc,
        Scheduler::Lc,
        Scheduler::Sed,
        Scheduler::Nq,
        Scheduler::Fo,
        Scheduler::Mh,
        Scheduler::Sh,
    ])
}

proptest! {
    #[test]
    fn reported_shares_are_those_of_the_kernels_algorithm(
        scheduler in modelled(),
        counts in (0..12_u8, 1..40_u8),
        asked in (1..100_u32, 1..100_u32),
    ) {
        let server = decide(scheduler, counts, asked);
        let weights = weights(&server);
        let bound = match scheduler {
            Scheduler::Mh | Scheduler::Sh | Scheduler::Wrr | Scheduler::Fo => 1e-12,
            // Twenty cycles, in each of which one connection more or less may be somewhere.
            _ => 0.05,
        };
        for (reported, modelled) in reported(&server).iter().zip(model(scheduler, &weights)) {
            prop_assert!((reported - modelled).abs() < bound, "{scheduler} {weights:?}: {reported} and {modelled}");
        }
        for level in &server.decision.levels {
            let of_level = server.decision.endpoints.iter().filter(|endpoint| endpoint.level.as_ref() == Some(&level.key));
            prop_assert_eq!(level.achieved, of_level.map(|endpoint| endpoint.share).sum::<Ratio>());
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
    fn whatever_drains_under_sh_nobody_is_refused(weights in proptest::collection::vec(0..6_u32, 1..20)) {
        let all: f64 = sh(&weights).iter().sum();
        let serves = weights.iter().any(|weight| *weight > 0);
        prop_assert!((all - f64::from(u8::from(serves))).abs() < 1e-9);
    }
}

#[test]
fn d12_mh_comes_as_near_as_six_bits_allow_and_says_so() {
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
fn d12_where_weights_are_ignored_the_levels_say_what_they_get() {
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
fn d12_a_scheduler_that_the_node_lacks_gives_way_to_wrr_with_its_weights() {
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
