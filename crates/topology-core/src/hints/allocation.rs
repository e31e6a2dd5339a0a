//! Computes how many endpoints each zone needs, and which zones give and receive.
//!
//! With N ready endpoints, a zone with the CPU share r should have `r x N`. It needs at least `ceil(r x N / 1.2)`, so
//! that no endpoint carries more than 20 % above its share. If the zones together need more than N, there is no
//! allocation. The remaining endpoints may be hinted for any zone.
//!
//! These are the only floats in this crate. The original computes with them, and they decide when a quotient is a whole
//! number: with 40, 32 and 28 % of the CPU and three endpoints, 1.2 / 1.2 is slightly more than 1, so the first zone
//! needs two endpoints.
//!
//! Example: 11 endpoints and three equal zones. Each should have 3 2/3 and needs 4. 12 > 11, so no endpoint gets hints
//! (kubernetes/kubernetes #122437).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::HintProblem;
use super::zones::Zones;

/// Endpoints by the zone they are hinted for.
pub(super) type EndpointCounts = BTreeMap<Arc<str>, i32>;

/// A zone is overloaded if its endpoints carry more than this fraction above their share.
const OVERLOAD: f64 = 0.2;

/// The endpoints that each zone needs.
#[derive(Debug)]
pub(super) struct Allocation(pub(super) BTreeMap<Arc<str>, Quota>);

/// The endpoints that a zone needs.
#[derive(Debug)]
pub(super) struct Quota {
    /// Its exact share, which may be fractional.
    pub(super) desired: f64,
    /// The most endpoints that it may keep if no slice has to be written.
    pub(super) most: i32,
}

/// How many endpoints each zone gives or receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ZoneMoves {
    pub(super) give: EndpointCounts,
    pub(super) receive: EndpointCounts,
}

impl Allocation {
    /// The allocation for so many ready endpoints.
    pub(super) fn new(zones: &Zones, endpoints: usize) -> Result<Self, HintProblem> {
        if zones.count() > endpoints {
            let zones = zones.count();
            return Err(HintProblem::TooFewEndpoints { endpoints, zones });
        }
        let all = i32::try_from(endpoints).unwrap_or(i32::MAX);
        let mut spare = all;
        let mut quotas = BTreeMap::new();
        for (zone, share) in zones.shares() {
            let wants = share.to_f64() * f64::from(all);
            let least = whole((wants * (1.0 / (1.0 + OVERLOAD))).ceil());
            spare = spare.saturating_sub(least);
            let desired = wants.max(f64::from(least));
            let quota = Quota {
                desired,
                most: least,
            };
            quotas.insert(Arc::clone(zone), quota);
        }
        if spare < 0 {
            return Err(HintProblem::Overload { endpoints });
        }
        for quota in quotas.values_mut() {
            quota.most += spare;
        }
        Ok(Self(quotas))
    }

    /// Computes which zones give and which receive, starting from the endpoints that are hinted now. Repeatedly moves
    /// one endpoint from the zone with the largest surplus to the one with the largest deficit, until no move helps.
    pub(super) fn moves(&self, hinted: &EndpointCounts) -> ZoneMoves {
        let excess = |(zone, quota): (_, &Quota)| {
            let hinted = hinted.get(zone).copied().unwrap_or_default();
            (zone, f64::from(hinted) - quota.desired)
        };
        let excess: Vec<(&Arc<str>, f64)> = self.0.iter().map(excess).collect();
        let mut givers: Vec<_> = excess
            .iter()
            .copied()
            .filter(|(_, excess)| *excess > 0.0)
            .collect();
        let lacking = excess.iter().filter(|(_, excess)| *excess < 0.0);
        let mut receivers: Vec<_> = lacking.map(|(zone, excess)| (*zone, -excess)).collect();
        let mut moves = ZoneMoves::default();
        while let (Some(giver), Some(receiver)) = (largest(&mut givers), largest(&mut receivers)) {
            if is_idle(giver.1, receiver.1) {
                break;
            }
            giver.1 -= 1.0;
            receiver.1 -= 1.0;
            *moves.give.entry(Arc::clone(giver.0)).or_default() += 1;
            *moves.receive.entry(Arc::clone(receiver.0)).or_default() += 1;
        }
        moves
    }
}

/// Whether moving one endpoint does not help: both zones differ from their share by less than one, or one of them by
/// less than a half.
fn is_idle(giver: f64, receiver: f64) -> bool {
    (giver < 1.0 && receiver < 1.0) || giver.min(receiver) < 0.5
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a number of endpoints, whole already"
)]
const fn whole(number: f64) -> i32 {
    number as i32
}

/// The largest; the first of equal ones.
fn largest<'a, 'z>(zones: &'a mut [(&'z Arc<str>, f64)]) -> Option<&'a mut (&'z Arc<str>, f64)> {
    zones
        .iter_mut()
        .rev()
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
}
