//! S10: thins out a distant level whose endpoints have small shares.

use std::collections::BTreeSet;
use std::net::IpAddr;

use topology_core::scheduler::Scheduler;

use super::place::Placed;
use super::{Id, Port, quantise};
use crate::frac::{Frac, frac};

impl Port<'_> {
    /// Keeps a part of the endpoints with the smallest share, until the weights are small enough or no level is left to
    /// thin out.
    pub(crate) fn thin_out(&self, limit: u32, placed: &mut Placed) {
        let scheduler = self.scheduler();
        // It keeps six bits of a weight.
        let limit = if scheduler == Scheduler::Mh {
            limit.min(63)
        } else {
            limit
        };
        let limit = frac(i128::from(limit), 1);
        let pools = |placed: &Placed| -> BTreeSet<_> {
            placed
                .share
                .keys()
                .map(|id| placed.pool.get(id).cloned())
                .collect()
        };
        // Without levels all endpoints have the same share.
        if placed.pool.is_empty() {
            return;
        }
        for _ in 0..pools(placed).len() {
            let most = placed.share.values().max().copied();
            let least = placed.share.values().min().copied();
            let (Some(most), Some(least)) = (most, least) else {
                return;
            };
            let small = quantise::are_small(scheduler, &placed.share, &placed.tier);
            if pools(placed).len() < 2 || small || most / least <= limit {
                return;
            }
            let with_least = placed.share.iter().filter(|(_, share)| **share == least);
            let pool = with_least
                .map(|(id, _)| placed.pool[id].clone())
                .min()
                .unwrap();
            let mut members: Vec<Id> = placed
                .share
                .keys()
                .filter(|id| placed.pool[id] == pool)
                .copied()
                .collect();
            let share: Frac = members.iter().map(|id| placed.share[id]).sum();
            let enough = limit * share / most;
            let keep = usize::try_from(enough.n / enough.d).unwrap().max(2);
            if keep >= members.len() {
                return;
            }
            members.sort_by_key(|(address, port)| place(self.view.me, *address, *port));
            for id in members.split_off(keep) {
                placed.share.remove(&id);
            }
            let all: Frac = members.iter().map(|id| placed.capacity[id]).sum();
            for id in members {
                placed.share.insert(id, share * placed.capacity[&id] / all);
            }
        }
    }
}

/// FNV-1a over the node's name, the address and the port, with the final mixing step of `SplitMix64`.
fn place(node: &str, address: IpAddr, port: u16) -> u64 {
    let mut bytes = node.as_bytes().to_vec();
    match address {
        IpAddr::V4(v4) => bytes.extend(v4.octets()),
        IpAddr::V6(v6) => bytes.extend(v6.octets()),
    }
    bytes.extend(port.to_be_bytes());
    let mut hash = 14_695_981_039_346_656_037_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(13_787_848_793_156_543_929);
    hash = (hash ^ (hash >> 27)).wrapping_mul(10_723_151_780_598_845_931);
    hash ^ (hash >> 31)
}
