//! Tables of buckets, each of which belongs to a real server: `mh`, `sh` and `dh`.
//!
//! All three go around the list of real servers until the table is full, so the real servers at the head of the list get
//! what the last round still fills.

use std::net::IpAddr;

use super::{MH_BUCKETS, SH_BUCKETS};
use crate::ratio::gcd;
use crate::virtual_server::VirtualServerKey;

/// How many of the bits of a weight `mh` keeps (`IP_VS_MH_TAB_BITS`).
const MH_BITS: u32 = 6;
/// The multiplier of `hash_32` (`include/linux/hash.h`).
const GOLDEN_RATIO: u32 = 0x61C8_8647;

/// How many buckets each real server of the list has under `mh`. The place of the buckets in the table does not matter:
/// the hash of an address meets each of them alike.
pub(super) fn of_mh(list: &[u32]) -> Vec<u64> {
    let room = MH_BUCKETS as usize;
    // A real server more than there are buckets is refused, and the table stays as it was: that of those further down.
    let refused = list.len().saturating_sub(room);
    let mut buckets = vec![0; refused];
    let held = list.get(refused..).unwrap_or_default();
    buckets.extend(filled(&turns(held), MH_BUCKETS.into()));
    buckets
}

/// How many buckets in a row each real server takes in a round.
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

/// Whole rounds, and what is left for those at the head.
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

/// How many buckets of clients lead to each real server of the list under `sh` with its fallback flag. A real server of
/// weight 0 holds a bucket too; its clients go to the next bucket that serves.
pub(super) fn of_sh(list: &[u32]) -> Vec<u64> {
    let holders = holders(list, |weight| weight.max(1));
    let serves = |at: &usize| list.get(*at).is_some_and(|weight| *weight > 0);
    let mut buckets = vec![0; list.len()];
    for place in 0..holders.len() {
        // The second look begins at twice the place (`ip_vs_sh_get_fallback`).
        let others = holders.iter().cycle().skip(2 * place).take(holders.len());
        let mut looks = holders.iter().skip(place).take(1).chain(others);
        let found = looks.find(|at| serves(at)).copied();
        if let Some(found) = found.and_then(|at| buckets.get_mut(at)) {
            *found += 1;
        }
    }
    buckets
}

/// The real server of the list that all clients of `key` get under `dh`: the one whose bucket the virtual address falls
/// into, none if that one has weight 0. A firewall mark has no address of its own; then it is the first.
pub(super) fn of_destination(list: &[u32], key: &VirtualServerKey) -> Option<usize> {
    let address = match key {
        VirtualServerKey::Address { address, .. } => Some(*address),
        VirtualServerKey::FirewallMark { .. } => None,
    };
    let place = address.map_or(0, |address| {
        // The table has 256 buckets, as that of `sh` has.
        folded(address).wrapping_mul(GOLDEN_RATIO) >> (u32::BITS - SH_BUCKETS.ilog2())
    });
    let found = holders(list, |_| 1).get(place as usize).copied()?;
    list.get(found).filter(|weight| **weight > 0).map(|_| found)
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

/// Who holds each of 256 buckets, as places in the list; empty without real servers.
fn holders(list: &[u32], in_a_row: impl Fn(u32) -> u32) -> Vec<usize> {
    let round = list
        .iter()
        .enumerate()
        .flat_map(|(at, weight)| (0..in_a_row(*weight)).map(move |_| at));
    round.cycle().take(SH_BUCKETS as usize).collect()
}
