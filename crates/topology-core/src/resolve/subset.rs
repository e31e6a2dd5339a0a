//! The third step of S10: thins out the farthest level.
//!
//! If the weights would be large because many distant endpoints share little traffic, a part of them is enough. Of a
//! level `k = max(2, floor(max weight x share of the level / largest share of an endpoint))` endpoints stay. They are
//! chosen by rendezvous hash of this node and the endpoint, so that all nodes together use all of them. This happens
//! only if neither small exact weights nor a short search succeed, and if the ratio of the largest to the smallest
//! share exceeds the maximum weight. A single level is never thinned out.
//!
//! Example: 90 % over 1 and 10 % over 200 endpoints with a maximum weight of 256: `256 x 10/90 = 28.4`, so 28 stay and
//! the weights are 252 and 1 (Q17s). The model is the subsetting of client-side load balancers.

use super::reason::Reason;
use super::record::Fact;
use super::s09_share;
use super::work::{EndpointPool, PortWork};
use crate::hash::position;
use crate::quantise;
use crate::ratio::Ratio;
use crate::scheduler::{MH_WEIGHT, Scheduler};

/// The minimum of endpoints that stay.
const FEWEST: u32 = 2;

/// Thins out levels until the weights are small enough or no level is left to thin out.
pub(super) fn run(work: &mut PortWork<'_>) {
    let Some(largest) = work.levelled().and_then(|policy| policy.subset_max_weight) else {
        return;
    };
    let largest = if work.scheduler() == Scheduler::Mh {
        largest.min(MH_WEIGHT)
    } else {
        largest
    };
    for _ in 0..work.pools.len() {
        let in_use = work.pools.iter().filter(|pool| pool.count > 0);
        if in_use.count() < 2 || quantise::has_small_weights(work.scheduler(), &work.classes) {
            return;
        }
        let Some((pool, keep)) = farthest(work, largest) else {
            return;
        };
        thin_out(work, pool, keep);
        s09_share::classify(work);
    }
}

/// The pool with the smallest share, and how many of its endpoints are enough.
fn farthest(work: &PortWork<'_>, largest: u32) -> Option<(usize, u32)> {
    let shares = || work.classes.iter().map(|class| class.share);
    let (most, least) = (shares().max()?, shares().min()?);
    if most / least <= Ratio::new(largest.into(), 1) {
        return None;
    }
    let in_use = work.candidates.iter().filter(|candidate| {
        let class = candidate.class.and_then(|class| work.classes.get(class));
        class.is_some_and(|class| class.share == least)
    });
    let at = in_use.map(|candidate| candidate.pool).min()?;
    let pool: &EndpointPool<'_> = work.pools.get(at)?;
    let enough = Ratio::new(largest.into(), 1) * pool.share / most;
    let enough = u32::try_from(enough.numerator() / enough.denominator()).unwrap_or(u32::MAX);
    let keep = enough.max(FEWEST);
    (keep < pool.count).then_some((at, keep))
}

fn thin_out(work: &mut PortWork<'_>, pool: usize, keep: u32) {
    let me = &work.me().node;
    let mut places: Vec<(u64, usize)> = work
        .candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.class.is_some() && candidate.pool == pool)
        .map(|(index, candidate)| {
            let place = position(me, candidate.endpoint.address, candidate.port);
            (place, index)
        })
        .collect();
    places.sort_unstable();
    for (_, index) in places.iter().skip(keep as usize) {
        if let Some(candidate) = work.candidates.get_mut(*index) {
            candidate.reason = Reason::Subset;
        }
    }
    let stay = places.iter().take(keep as usize);
    let capacity = stay.filter_map(|(_, index)| Some(work.candidates.get(*index)?.capacity));
    let capacity = capacity.map(u64::from).sum();
    let Some(pool) = work.pools.get_mut(pool) else {
        return;
    };
    let of = std::mem::replace(&mut pool.count, keep);
    pool.capacity = capacity;
    if let Some(level) = work.levels.get(pool.level) {
        let level = level.key.clone();
        work.facts.push(Fact::Subset {
            level,
            kept: keep,
            of,
        });
    }
}
