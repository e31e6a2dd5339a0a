//! Limits the Events about health check node ports: a Service that changes its port all the time must not make every node
//! write all the time (D13). `status` and the log have every failure.

use std::time::Duration;

use tokio::time::Instant;

/// Events in quick succession.
const BURST: u32 = 10;
/// Afterwards one Event is permitted in this time.
const REFILL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct EventBudget {
    left: u32,
    /// When the last permit was added.
    refilled: Instant,
}

impl EventBudget {
    pub(super) fn new() -> Self {
        Self {
            left: BURST,
            refilled: Instant::now(),
        }
    }

    /// Takes a permit; false if none is left.
    pub(super) fn take(&mut self) -> bool {
        while self.left < BURST && self.refilled.elapsed() >= REFILL {
            self.left += 1;
            self.refilled += REFILL;
        }
        if self.left == BURST {
            self.refilled = Instant::now();
        }
        let is_permitted = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn d13_a_port_that_fails_again_and_again_causes_one_event_a_minute() {
        let mut budget = EventBudget::new();
        let permits = |budget: &mut EventBudget| (0..100).filter(|_| budget.take()).count();
        assert_eq!(permits(&mut budget), 10);
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert_eq!(permits(&mut budget), 1);
        }
        tokio::time::advance(Duration::from_secs(86_400)).await;
        assert_eq!(permits(&mut budget), 10);
    }
}
