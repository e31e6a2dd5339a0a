//! Models the kernel's schedulers. Written from `net/netfilter/ipvs/ip_vs_*.c`, without code of the engine: tables
//! bucket by bucket, lists connection by connection.
//!
//! For schedulers that count connections the model assumes: under `wlc`, `lc`, `sed`, `nq` and `twos` no connection
//! ends, and under `fo`, `ovf`, `lblc` and `lblcr` each ends before the next one comes.

use std::net::IpAddr;

use topology_core::model::Protocol;
use topology_core::scheduler::Scheduler;

/// The longest cycle that is simulated connection by connection.
const LONGEST: u64 = 20_000;
/// The number of simulated connections for `twos`, which is random.
const DRAWS: u64 = 4_000;

/// The number of clients or connections of each real server, in the order in which they entered an empty virtual
/// server; `None` if the cycle is too long to simulate. `destinations` has the virtual addresses that clients use.
pub(crate) fn picks(
    scheduler: Scheduler,
    weights: &[u32],
    protocol: Protocol,
    destinations: &[IpAddr],
) -> Option<Vec<u64>> {
    // The last one added is the first one in the kernel's list.
    let list: Vec<u64> = weights
        .iter()
        .rev()
        .map(|weight| u64::from(*weight))
        .collect();
    let cycle = list.iter().sum();
    let mut counts = match scheduler {
        Scheduler::Mh => mh(&list),
        Scheduler::Sh => sh(&list),
        Scheduler::Dh => dh(&list, destinations),
        Scheduler::Twos => twos(&list),
        _ if cycle > LONGEST => return None,
        Scheduler::Wrr => wrr(&list, cycle),
        Scheduler::Rr => rr(&list),
        Scheduler::Lc => {
            let serving = list.iter().filter(|weight| **weight > 0).count();
            let connections = u64::try_from(serving).unwrap() * 20;
            connected(&list, connections, true, |own, _| (own, 1))
        }
        Scheduler::Wlc => connected(&list, cycle, true, |own, weight| (own, weight)),
        Scheduler::Sed => connected(&list, cycle, are_active(protocol), |own, weight| {
            (own + 1, weight)
        }),
        Scheduler::Nq => connected(&list, cycle, are_active(protocol), |own, weight| {
            (if own == 0 { 0 } else { own + 1 }, weight)
        }),
        // The first one with the largest weight.
        Scheduler::Fo | Scheduler::Ovf => connected(&list, cycle, false, |_, weight| (1, weight)),
        // The least loaded one; there are no connections.
        Scheduler::Lblc | Scheduler::Lblcr => {
            connected(&list, cycle, false, |own, weight| (own, weight))
        }
    };
    counts.reverse();
    Some(counts)
}

/// Whether the kernel counts connections as active: those of UDP have no state.
fn are_active(protocol: Protocol) -> bool {
    protocol != Protocol::Udp
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Ten rounds of the list: from the last picked one to the next one that serves.
fn rr(list: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; list.len()];
    let serving = list.iter().filter(|weight| **weight > 0).count();
    let mut at = 0;
    for _ in 0..serving * 10 {
        while list[at % list.len()] == 0 {
            at += 1;
        }
        counts[at % list.len()] += 1;
        at += 1;
    }
    counts
}

/// A cycle of `ip_vs_wrr_schedule`: from the last picked one, with a current weight that decreases each round.
fn wrr(list: &[u64], cycle: u64) -> Vec<u64> {
    let mut counts = vec![0; list.len()];
    let step = list.iter().copied().fold(0, gcd);
    let Some(top) = list.iter().max().filter(|largest| **largest > 0) else {
        return counts;
    };
    let highest = top - (step - 1);
    let (mut at, mut level) = (0, highest);
    for _ in 0..cycle / step {
        loop {
            if at == list.len() {
                at = 0;
                level = if level > step { level - step } else { highest };
            }
            at += 1;
            if list[at - 1] >= level {
                counts[at - 1] += 1;
                break;
            }
        }
    }
    counts
}

/// So many connections, one after the other: each to the first real server with the smallest load for its weight.
/// `stay`: whether a connection counts for later ones.
fn connected(
    list: &[u64],
    connections: u64,
    stay: bool,
    load: impl Fn(u64, u64) -> (u64, u64),
) -> Vec<u64> {
    let mut counts = vec![0_u64; list.len()];
    for _ in 0..connections {
        let mut least: Option<(usize, (u64, u64))> = None;
        for (at, weight) in list.iter().enumerate() {
            if *weight == 0 {
                continue;
            }
            let (load, by) = load(if stay { counts[at] } else { 0 }, *weight);
            let lighter = |(_, (least, than)): &(usize, (u64, u64))| load * than < least * by;
            if least.as_ref().is_none_or(lighter) {
                least = Some((at, (load, by)));
            }
        }
        if let Some((at, _)) = least {
            counts[at] += 1;
        }
    }
    counts
}

/// Two random real servers, with probabilities by weight; the one with fewer connections for its weight gets the
/// connection.
fn twos(list: &[u64]) -> Vec<u64> {
    let mut counts = vec![0_u64; list.len()];
    let sum: u64 = list.iter().sum();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut left = (state >> 33) % (sum + 1);
        let chosen = list.iter().position(|weight| {
            let found = *weight > 0 && left <= *weight;
            left = left.saturating_sub(*weight);
            found
        });
        chosen.unwrap()
    };
    for _ in 0..DRAWS * u64::from(sum > 0) {
        let (one, other) = (draw(), draw());
        let better = list[other] * counts[one] > list[one] * counts[other];
        counts[if better { other } else { one }] += 1;
    }
    counts
}

/// Maglev: every real server has a permutation of the table, and in turn takes its next free position.
fn mh(list: &[u64]) -> Vec<u64> {
    const TABLE: usize = 4_093;
    let mut counts = vec![0; list.len()];
    let common = list.iter().copied().fold(0, gcd);
    if common == 0 {
        return counts;
    }
    let bits = |number: u64| u64::BITS - number.leading_zeros();
    let shift = bits(list.iter().max().unwrap() / common).saturating_sub(6);
    let mut places: Vec<usize> = (0..list.len())
        .map(|at| at * 2_654_435_761 % TABLE)
        .collect();
    let skip = |at: usize| at * 40_503 % (TABLE - 1) + 1;
    let mut taken = vec![false; TABLE];
    let mut filled = 0;
    loop {
        for (at, weight) in list.iter().enumerate() {
            let turns = match (weight / common) >> shift {
                0 => u64::from(*weight != 0),
                turns => turns,
            };
            for _ in 0..turns {
                while taken[places[at]] {
                    places[at] = (places[at] + skip(at)) % TABLE;
                }
                taken[places[at]] = true;
                counts[at] += 1;
                filled += 1;
                if filled == TABLE {
                    return counts;
                }
            }
        }
    }
}

/// Source hashing with the fallback flag: 256 buckets, assigned in order; from a bucket that does not serve, the search
/// continues.
fn sh(list: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; list.len()];
    if list.is_empty() {
        return counts;
    }
    let mut buckets = [0; 256];
    let (mut at, mut dealt) = (0, 0);
    for bucket in &mut buckets {
        *bucket = at;
        dealt += 1;
        if dealt >= list[at] {
            (at, dealt) = ((at + 1) % list.len(), 0);
        }
    }
    for hash in 0..256 {
        let mut places = std::iter::once(hash).chain((0..256).map(|offset| offset + 2 * hash));
        let found = places.find(|place| list[buckets[place % 256]] > 0);
        if let Some(place) = found {
            counts[buckets[place % 256]] += 1;
        }
    }
    counts
}

/// Destination hashing: 256 buckets, assigned one by one regardless of weight; a virtual address hashes to one of them.
fn dh(list: &[u64], destinations: &[IpAddr]) -> Vec<u64> {
    let mut counts = vec![0; list.len()];
    for address in destinations {
        let words: Vec<u32> = match address {
            IpAddr::V4(address) => vec![u32::from_be_bytes(address.octets())],
            IpAddr::V6(address) => {
                let bytes = address.octets();
                let words = bytes.chunks_exact(4);
                words
                    .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
                    .collect()
            }
        };
        let folded = words.into_iter().fold(0, |folded, word| folded ^ word);
        // `hash_32(folded, 8)`
        let bucket = folded.wrapping_mul(0x61C8_8647) >> 24;
        if let Some(at) = usize::try_from(bucket).unwrap().checked_rem(list.len()) {
            counts[at] += u64::from(list[at] > 0);
        }
    }
    counts
}
