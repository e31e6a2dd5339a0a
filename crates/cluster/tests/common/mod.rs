//! What the tests share: waiting for what is told.

use std::time::Duration;

use cluster::event::Batch;
use cluster::source::Watch;

/// Longer than anything takes, so that a test that waits for nothing fails instead of hanging.
const LIMIT: Duration = Duration::from_secs(20);

/// A runtime for one test.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

/// The next batch; fails the test when none comes.
pub(crate) async fn next(watch: &mut Watch) -> Batch {
    tokio::time::timeout(LIMIT, watch.next())
        .await
        .expect("nothing happened")
        .expect("the watch ended")
}
