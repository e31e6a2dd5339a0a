//! Observes which objects wait for labels, so that a long wait is reported.

use std::time::Duration;

use tokio::time::sleep;

use super::super::feed::Feed;

/// An object that waits at two moments this far apart waits long.
const PERIOD: Duration = Duration::from_secs(60);

/// Observes the waiting objects in every [`PERIOD`]. Ends when the receiver of the batches is gone.
pub(in crate::api::watch) async fn observe_waiting(feed: &Feed) -> Option<()> {
    loop {
        sleep(PERIOD).await;
        feed.reflector.borrow_mut().observe_waiting();
        feed.send_batches().await?;
    }
}
