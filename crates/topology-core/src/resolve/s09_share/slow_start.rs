//! Slow start of new endpoints: `1 + floor(9 t / slow start)` tenths of their capacity, `t` after they became ready.

use std::net::IpAddr;

use crate::memory::ServerMemory;
use crate::resolve::time;
use crate::resolve::work::PortWork;

/// The steps from a tenth to all.
const STEPS: i64 = 9;

/// Reduces the capacity of new endpoints. If all endpoints have the same share, only records them.
pub(super) fn run(work: &mut PortWork<'_>) {
    let slow_start = work.policy().map_or(0, |policy| policy.slow_start);
    let (Some(now), true) = (work.me().now, slow_start > 0) else {
        return;
    };
    let duration = i64::from(slow_start) * 1_000;
    let since = ready_since(work, now);
    let levelled = work.levelled().is_some();
    let mut endpoints = 0;
    let mut next: Option<i64> = None;
    for candidate in &mut work.candidates {
        let id = (candidate.endpoint.address, candidate.port);
        let found = since.binary_search_by_key(&id, |(id, _)| *id).ok();
        let began = found.and_then(|at| since.get(at)).map(|(_, began)| *began);
        let steps = began.map_or(STEPS, |began| {
            time::passed(now.saturating_sub(began), duration, STEPS)
        });
        if !levelled {
            continue;
        }
        let tenths = u32::try_from(steps + 1).unwrap_or(1);
        candidate.capacity = candidate.capacity.saturating_mul(tenths);
        if let Some(began) = began.filter(|_| steps < STEPS && candidate.reason.is_chosen()) {
            endpoints += 1;
            let step = time::next(began, duration, steps, STEPS);
            next = Some(next.map_or(step, |sooner: i64| sooner.min(step)));
        }
    }
    if let Some(next) = next {
        work.ask_at(next);
    }
    work.growing = endpoints;
    work.memory
        .get_or_insert_with(ServerMemory::default)
        .ready_since = since;
}

/// Since when each ready endpoint has been ready. In a new Service all endpoints count as old.
fn ready_since(work: &PortWork<'_>, now: i64) -> Vec<((IpAddr, u16), i64)> {
    let me = work.me();
    let known = me.memory.of(&work.view.service.name, &work.view.key());
    let mut since: Vec<_> = work
        .candidates
        .iter()
        .filter(|candidate| candidate.is_ready())
        .map(|candidate| {
            let id = (candidate.endpoint.address, candidate.port);
            let began = known.map_or(i64::MIN, |known| {
                let found = known.ready_since.binary_search_by_key(&id, |(id, _)| *id);
                let found = found.ok().and_then(|at| known.ready_since.get(at));
                found.map_or(now, |(_, began)| *began)
            });
            (id, began)
        })
        .collect();
    since.sort_unstable();
    since
}
