//! A list that is in doubt: when the collection is listed again.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{Driver, Event, chance};

/// Within this time after the earliest moment all agents list again what is in doubt.
const AGAIN: Duration = Duration::from_secs(15);

impl Driver<'_> {
    /// Returns when the collection is to be listed again because its last list is in doubt.
    pub(super) async fn doubted(&self) {
        match self.list_again {
            Some(moment) => sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn list_again_if_due(&mut self) {
        if self
            .list_again
            .is_some_and(|moment| moment <= Instant::now())
        {
            self.list_again = None;
            self.apply(Event::Doubted);
        }
    }

    /// Takes note of whether the list that has ended is in doubt. Agents list again at different moments.
    pub(super) fn doubt(&mut self) {
        let doubt = self.shared.reflector.borrow().doubt(self.number);
        let kept = doubt.map_or(0, |(_, lacking)| lacking);
        self.shared.board.doubts(self.number, kept);
        self.list_again =
            doubt.map(|(moment, _)| self.shared.epoch + moment + AGAIN.mul_f64(chance()));
    }
}
