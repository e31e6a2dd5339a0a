//! Waiting for batches of a watch.

use std::time::Duration;

use cluster::event::Batch;
use cluster::source::Watch;

/// A test that waits in vain fails after this time instead of hanging.
const LIMIT: Duration = Duration::from_secs(20);

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
        .expect("no batch arrived in time")
        .expect("the watch ended")
}
