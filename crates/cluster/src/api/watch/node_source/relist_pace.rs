//! Limits how often all Nodes are relisted for labels that come into use.
//!
//! A user who may edit one Service can name a label that was not kept, and then every agent needs a
//! list of all Nodes. So the limit applies to the agent, not to a label, an object or a connection.

use std::time::Duration;

/// The owner of objects that wait for labels. Each owner has its own pace: objects of tenants do
/// not delay those of administrators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelOwner {
    /// A `ClusterTopologyPolicy` or a `TopologyDrain`.
    Administrator,
    /// A Service or a `TopologyPolicy`.
    Tenant,
}

/// The paces of both owners. Times are those of the caller's monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct RelistPaces {
    administrators: RelistPace,
    tenants: RelistPace,
}

impl RelistPaces {
    pub(crate) fn not_before(&self, label_owner: LabelOwner) -> Duration {
        match label_owner {
            LabelOwner::Administrator => self.administrators.not_before(),
            LabelOwner::Tenant => self.tenants.not_before(),
        }
    }

    /// Records that a list is requested now. A list for administrators also serves tenants, so it
    /// begins the interval of tenants, too.
    pub(crate) fn requested(&mut self, label_owner: LabelOwner, now: Duration) {
        match label_owner {
            LabelOwner::Administrator => {
                self.administrators.requested(now);
                self.tenants.restart(now);
            }
            LabelOwner::Tenant => self.tenants.requested(now),
        }
    }
}

/// An interval between lists that doubles with each list, and is short again after a quiet time.
#[derive(Debug, Default)]
struct RelistPace {
    /// When the last list was requested, and the interval after it.
    last: Option<(Duration, Duration)>,
}

impl RelistPace {
    const SHORTEST: Duration = Duration::from_secs(120);
    const LONGEST: Duration = Duration::from_secs(32 * 60);
    /// After this many intervals without a list, the shortest interval applies again.
    const QUIET: u32 = 4;

    fn not_before(&self) -> Duration {
        self.last
            .map_or(Duration::ZERO, |(last, interval)| last + interval)
    }

    /// Begins the interval again, because a list for the other owner serves this one, too.
    fn restart(&mut self, now: Duration) {
        let interval = self.last.map_or(Self::SHORTEST, |(_, interval)| interval);
        self.last = Some((now, interval));
    }

    fn requested(&mut self, now: Duration) {
        let interval = match self.last {
            Some((last, interval)) if now.saturating_sub(last) < interval * Self::QUIET => {
                (interval * 2).min(Self::LONGEST)
            }
            _ => Self::SHORTEST,
        };
        self.last = Some((now, interval));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(count: u64) -> Duration {
        Duration::from_secs(60 * count)
    }

    #[test]
    fn the_interval_doubles_while_lists_are_needed_and_is_short_again_after_a_quiet_time() {
        let mut paces = RelistPaces::default();
        let mut now = Duration::ZERO;
        let mut intervals = Vec::new();
        for _ in 0..7 {
            now = now.max(paces.not_before(LabelOwner::Tenant));
            paces.requested(LabelOwner::Tenant, now);
            intervals.push(
                paces
                    .not_before(LabelOwner::Tenant)
                    .saturating_sub(now)
                    .as_secs()
                    / 60,
            );
        }
        assert_eq!(intervals, [2, 4, 8, 16, 32, 32, 32]);
        let later = now + minutes(4 * 32);
        paces.requested(LabelOwner::Tenant, later);
        assert_eq!(paces.not_before(LabelOwner::Tenant), later + minutes(2));
    }

    #[test]
    fn d13_tenants_do_not_delay_administrators() {
        let mut paces = RelistPaces::default();
        paces.requested(LabelOwner::Tenant, minutes(1));
        assert_eq!(paces.not_before(LabelOwner::Tenant), minutes(3));
        assert_eq!(paces.not_before(LabelOwner::Administrator), Duration::ZERO);
        paces.requested(LabelOwner::Administrator, minutes(2));
        assert_eq!(
            paces.not_before(LabelOwner::Tenant),
            minutes(4),
            "but they share the list"
        );
    }
}
