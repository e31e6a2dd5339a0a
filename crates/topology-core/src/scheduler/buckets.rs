//! Computes the bucket tables of `mh`, `sh` and `dh`, where each bucket belongs to a real server.
//!
//! All three walk the list of real servers in rounds until the table is full. So the real servers at the head of the
//! list get the buckets of the last, incomplete round.

use std::net::IpAddr;

use super::{MH_BUCKETS, SH_BUCKETS};
use crate::ratio::gcd;

/// Number of bits of a weight that `mh` keeps (`IP_VS_MH_TAB_BITS`).
const MH_BITS: u32 = 6;
/// The multiplier of `hash_32` (`include/linux/hash.h`).
const GOLDEN_RATIO: u32 = 0x61C8_8647;

/// Number of buckets of each real server of the list under `mh`. The position of buckets in the table does not matter,
/// because hashed addresses are distributed evenly.
pub(super) fn of_mh(list: &[u32]) -> Vec<u64> {
    let room = MH_BUCKETS as usize;
    // The kernel refuses real servers beyond the number of buckets, and the table stays that of the others.
    let refused = list.len().saturating_sub(room);
    let mut buckets = vec![0; refused];
    let held = list.get(refused..).unwrap_or_default();
    buckets.extend(filled(&turns(held), MH_BUCKETS.into()));
    buckets
}

/// Number of successive buckets of each real server in a round.
fn turns(list: &[u32]) -> Vec<u64> {
    let common = list
        .iter()
        .fold(0, |common, weight| gcd(common, u128::from(*weight)));
    let common = u32::try_from(common).unwrap_or(1).max(1);
    let largest = list.iter().copied().max().unwrap_or(0) / common;
    let shift = (u32::BITS - largest.leading_zeros()).saturating_sub(MH_BITS);
    let turns = |weight: &u32| match (weight / common) >> shift {
        0 => u64::from(*weight > 0),
        turns => turns.into(),
    };
    list.iter().map(turns).collect()
}

/// Complete rounds, and the rest for the head of the list.
fn filled(turns: &[u64], room: u64) -> Vec<u64> {
    let round: u64 = turns.iter().sum();
    let (rounds, mut left) = (
        room.checked_div(round).unwrap_or(0),
        room.checked_rem(round).unwrap_or(0),
    );
    let fill = |turns: &u64| {
        let more = left.min(*turns);
        left -= more;
        rounds * turns + more
    };
    turns.iter().map(fill).collect()
}

/// Number of buckets whose clients reach each real server under `sh` with its fallback flag. A real server of weight 0
/// has buckets, too; their clients use the next bucket with a real server that serves.
pub(super) fn of_sh(list: &[u32]) -> Vec<u64> {
    let holders = holders(list, |weight| weight.max(1));
    let serves = |at: &usize| list.get(*at).is_some_and(|weight| *weight > 0);
    let mut buckets = vec![0; list.len()];
    for place in 0..holders.len() {
        // The fallback search starts at twice the position (`ip_vs_sh_get_fallback`).
        let others = holders.iter().cycle().skip(2 * place).take(holders.len());
        let mut looks = holders.iter().skip(place).take(1).chain(others);
        let found = looks.find(|at| serves(at)).copied();
        if let Some(found) = found.and_then(|at| buckets.get_mut(at)) {
            *found += 1;
        }
    }
    buckets
}

/// The number of `destinations` whose clients each real server gets under `dh`: the one of the virtual address's bucket,
/// unless its weight is 0.
pub(super) fn of_destinations(list: &[u32], destinations: &[IpAddr]) -> Vec<u64> {
    let holders = holders(list, |_| 1);
    let mut counts = vec![0; list.len()];
    for destination in destinations {
        // The table has 256 buckets, as that of `sh`.
        let place =
            folded(*destination).wrapping_mul(GOLDEN_RATIO) >> (u32::BITS - SH_BUCKETS.ilog2());
        let found = holders.get(place as usize).copied();
        let serves = |at: &usize| list.get(*at).is_some_and(|weight| *weight > 0);
        if let Some(count) = found.filter(serves).and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    counts
}

fn folded(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            let word = |at: u32| u32::try_from((bits >> (32 * at)) & 0xFFFF_FFFF).unwrap_or(0);
            (0..4).fold(0, |folded, at| folded ^ word(at))
        }
    }
}

/// The real server of each of 256 buckets, as positions in the list; empty without real servers.
fn holders(list: &[u32], in_a_row: impl Fn(u32) -> u32) -> Vec<usize> {
    let round = list
        .iter()
        .enumerate()
        .flat_map(|(at, weight)| (0..in_a_row(*weight)).map(move |_| at));
    round.cycle().take(SH_BUCKETS as usize).collect()
}
