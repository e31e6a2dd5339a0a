//! S9: computes the share of each endpoint.
//!
//! The endpoints of a level divide its share by the capacity of their Nodes (label
//! [`CAPACITY_LABEL`](crate::model::CAPACITY_LABEL), 1 by default) if our policy has levels;
//! otherwise equally. An endpoint in a level without a share is not used.
//!
//! **Residual by capacity**: if a cap keeps traffic out of a nearer level (S8), an outer level
//! first divides its share among zones by `max(0, u - D)`, the surplus of a zone's part of all
//! usable endpoints over its part of the demand. If no zone has a surplus, it divides as usual.
//! **Slow start**: an endpoint that became ready while others were counts a tenth at first, and a
//! tenth more every ninth of the time.
//!
//! Example: level `zone` has 15 % and three endpoints: 5 % each; if one of their Nodes has capacity
//! 2: 7.5, 3.75, 3.75. Zones with 2, 2 and 8 of 12 endpoints, equal demand and no overload: the
//! traffic above the caps of the small zones goes to the large one alone, and every endpoint
//! carries the same load. Source: Envoy's residual capacity for zone-aware routing.

mod slow_start;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::candidates::Candidate;
use super::demand;
use super::reason::Reason;
use super::record::Fact;
use super::work::{EndpointPool, LevelState, PoolScope, PortWork};
use crate::policy::Policy;
use crate::quantise::Class;
use crate::ratio::Ratio;

/// Divides the share of each level among its endpoints.
pub(super) fn run(work: &mut PortWork<'_>) {
    if work.growing > 0 {
        let endpoints = work.growing;
        work.facts.push(Fact::SlowStart { endpoints });
    }
    make_pools(work);
    fill_pools(work);
    classify(work);
    let fact = |class: &Class| {
        let level = work.levels.get(class.level)?;
        Some(Fact::Each {
            level: level.key.clone(),
            count: class.count,
            share: class.share,
        })
    };
    let facts: Vec<Fact> = work.classes.iter().filter_map(fact).collect();
    work.facts.extend(facts);
}

/// The level that the level at `at` counts as: itself, or the one that it merged into.
fn effective(levels: &[LevelState], mut at: usize) -> usize {
    while let Some(into) = levels.get(at).and_then(|level| level.merged_into) {
        at = into;
    }
    at
}

/// Creates a pool for each level with a share, or one for each zone with a surplus in it.
fn make_pools(work: &mut PortWork<'_>) {
    let mut pools = Vec::with_capacity(work.levels.len());
    for (at, level) in work.levels.iter().enumerate() {
        if level.share.is_zero() {
            continue;
        }
        let rooms = match work.policy() {
            Some(policy) if level.takes_residual => rooms(work, policy, at),
            _ => Vec::new(),
        };
        let sum: Ratio = rooms.iter().map(|(_, room)| room.spare()).sum();
        if sum.is_zero() {
            pools.push(EndpointPool::new(at, PoolScope::Level, level.share));
            continue;
        }
        for (zone, room) in rooms {
            let share = level.share * room.spare() / sum;
            work.facts.push(Fact::Spare {
                zone: zone.cloned(),
                endpoints: room.endpoints,
                demand: room.demand,
                share,
            });
            pools.push(EndpointPool::new(at, PoolScope::Zone(zone), share));
        }
    }
    work.pools = pools;
}

/// A zone's part of endpoints and demand.
struct ZoneRoom {
    endpoints: Ratio,
    demand: Ratio,
}

impl ZoneRoom {
    fn spare(&self) -> Ratio {
        self.endpoints - self.demand
    }
}

/// The zones with endpoints in the level at `at`, with their parts.
fn rooms<'a>(
    work: &PortWork<'a>,
    policy: &Policy,
    at: usize,
) -> Vec<(Option<&'a Arc<str>>, ZoneRoom)> {
    let mut zones: BTreeMap<Option<&Arc<str>>, (u32, bool)> = BTreeMap::new();
    let mut all = 0;
    for candidate in &work.candidates {
        if candidate.reason.is_chosen() {
            let inside = candidate.level.map(|level| effective(&work.levels, level)) == Some(at);
            let zone = zones.entry(candidate.zone).or_default();
            (zone.0, zone.1) = (zone.0 + 1, zone.1 || inside);
            all += 1;
        }
    }
    let here = zones.into_iter().filter(|(_, (_, inside))| *inside);
    here.map(|(zone, (count, _))| {
        let endpoints = Ratio::new(count.into(), all);
        let demand = demand::of_zone(work, &policy.demand, zone);
        (zone, ZoneRoom { endpoints, demand })
    })
    .collect()
}

/// Assigns every endpoint that gets traffic to its pool, and gives the others a reason.
fn fill_pools(work: &mut PortWork<'_>) {
    let effective: Vec<usize> = (0..work.levels.len())
        .map(|at| effective(&work.levels, at))
        .collect();
    for candidate in &mut work.candidates {
        if !candidate.reason.is_chosen() {
            continue;
        }
        let level = candidate
            .level
            .and_then(|level| effective.get(level))
            .copied();
        let at = level.and_then(|level| pool_of(&work.pools, level, candidate.zone));
        let found = at.and_then(|at| Some((at, work.pools.get_mut(at)?)));
        match found.filter(|(_, pool)| !pool.share.is_zero()) {
            Some((at, pool)) => {
                candidate.pool = at;
                pool.capacity += u64::from(candidate.capacity);
                pool.count += 1;
            }
            None => candidate.reason = why_unused(&work.levels, level),
        }
    }
}

/// The pool of the endpoints of a level in `zone`. Pools are sorted by level, and those of a level by zone: a search costs
/// little even if every endpoint has a zone of its own.
fn pool_of(pools: &[EndpointPool<'_>], level: usize, zone: Option<&Arc<str>>) -> Option<usize> {
    let at = pools.partition_point(|pool| match pool.of {
        PoolScope::Level => pool.level < level,
        PoolScope::Zone(own) => (pool.level, own) < (level, zone),
    });
    let pool = pools.get(at)?;
    (pool.level == level && pool.of.has(zone)).then_some(at)
}

fn why_unused(levels: &[LevelState], level: Option<usize>) -> Reason {
    let level = level.and_then(|level| levels.get(level));
    match level {
        Some(level) if !level.share.is_zero() => Reason::ZoneFull,
        Some(level) if level.counted == 0 && level.usable > 0 => Reason::Recovering,
        _ => Reason::NearerLevelTakesAll,
    }
}

/// Groups endpoints of the same pool and capacity into classes.
pub(super) fn classify(work: &mut PortWork<'_>) {
    let mut counts: BTreeMap<(usize, u32), u32> = BTreeMap::new();
    for candidate in &work.candidates {
        if candidate.reason.is_chosen() {
            let kind = (candidate.pool, candidate.capacity);
            *counts.entry(kind).or_default() += 1;
        }
    }
    let kinds: Vec<((usize, u32), u32)> = counts.into_iter().collect();
    for candidate in &mut work.candidates {
        let kind = (candidate.pool, candidate.capacity);
        let found = kinds.binary_search_by_key(&kind, |(kind, _)| *kind);
        candidate.class = found.ok().filter(|_| candidate.reason.is_chosen());
    }
    let class = |((pool, capacity), count): &((usize, u32), u32)| {
        let pool = work.pools.get(*pool)?;
        Some(Class {
            level: pool.level,
            share: pool.share * Ratio::new((*capacity).into(), pool.capacity),
            count: *count,
        })
    };
    work.classes = kinds.iter().filter_map(class).collect();
}

impl<'a> EndpointPool<'a> {
    const fn new(level: usize, of: PoolScope<'a>, share: Ratio) -> Self {
        Self {
            level,
            of,
            share,
            capacity: 0,
            count: 0,
        }
    }
}

/// Reads the capacity of each candidate's Node, less while the candidate is new. Without levels all
/// have the same.
pub(super) fn read_capacities(work: &mut PortWork<'_>) {
    if work.levelled().is_some_and(Policy::uses_capacity) {
        for candidate in &mut work.candidates {
            candidate.capacity = capacity(candidate);
        }
    }
    slow_start::run(work);
}

fn capacity(candidate: &Candidate<'_>) -> u32 {
    let node = candidate.node;
    node.map_or(1, |node| node.capacity().into())
}
