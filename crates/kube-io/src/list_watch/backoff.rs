//! Computes pauses: longer after each failure, different for each node, and at least as long as the
//! server asks for.

use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The average wait after the first failure.
    const FIRST: Duration = Duration::from_millis(800);
    /// The longest wait, unless the server asks for more.
    pub(crate) const LONGEST: Duration = Duration::from_secs(30);
    /// Streams of many nodes that a server closes together are opened again within this time.
    const SPREAD: Duration = Duration::from_secs(1);

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure. Returns the wait: on average double the last one, times a random 0.5 to
    /// 1.5.
    pub(crate) fn fail(&mut self, chance: f64) -> Duration {
        let doubled = Self::FIRST.saturating_mul(1 << self.failures.min(6));
        self.failures = self.failures.saturating_add(1);
        let most = Self::LONGEST.mul_f64(2.0 / 3.0);
        doubled.min(most).mul_f64(0.5 + within(chance))
    }

    /// Returns a short wait, different for each node.
    pub(crate) fn spread(chance: f64) -> Duration {
        Self::SPREAD.mul_f64(within(chance))
    }

    /// Returns the wait that the server asks for, and up to a quarter more.
    pub(crate) fn asked(retry_after: Option<Duration>, chance: f64) -> Duration {
        let asked = retry_after.unwrap_or_default();
        asked.mul_f64(1.0 + within(chance) / 4.0)
    }
}

fn within(chance: f64) -> f64 {
    if chance.is_finite() {
        chance.clamp(0.0, 1.0)
    } else {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_restart_after_a_success() {
        let mut pace = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| pace.fail(0.5).as_millis()).collect();
        assert_eq!(
            waits,
            [
                800, 1600, 3200, 6400, 12_800, 20_000, 20_000, 20_000, 20_000
            ]
        );
        pace.succeed();
        assert_eq!(pace.fail(0.0).as_millis(), 400);
        assert_eq!(Backoff { failures: 99 }.fail(1.0), Backoff::LONGEST);
    }

    #[test]
    fn retry_after_is_respected() {
        assert_eq!(
            Backoff::asked(Some(Duration::from_secs(8)), 1.0),
            Duration::from_secs(10)
        );
        assert_eq!(Backoff::asked(None, 1.0), Duration::ZERO);
    }
}
