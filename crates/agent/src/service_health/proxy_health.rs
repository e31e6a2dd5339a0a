//! Whether the proxy is healthy, for many responses at once.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::health::{self, HealthSource};

/// How long a result is used: thousands of Services are checked every few seconds, and each query interrupts the loop.
const FRESH: Duration = Duration::from_secs(1);

/// The health of the proxy, queried at most once in [`FRESH`].
pub(super) struct ProxyHealth<S> {
    source: S,
    last: Mutex<Option<(Instant, bool)>>,
}

impl<S: HealthSource> ProxyHealth<S> {
    pub(super) fn new(source: S) -> Self {
        Self {
            source,
            last: Mutex::new(None),
        }
    }

    /// The same as on `/livez`.
    pub(super) async fn is_healthy(&self) -> bool {
        let mut last = self.last.lock().await;
        if let Some((at, healthy)) = *last
            && at.elapsed() < FRESH
        {
            return healthy;
        }
        let state = self.source.health_state().await;
        let healthy = health::is_healthy(&state, Timestamp::now());
        *last = Some((Instant::now(), healthy));
        healthy
    }
}
