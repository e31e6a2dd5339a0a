//! Limits the connections of servers: a process that connects again and again must not fill the log or occupy the loop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::endpoint_connections::{EndpointConnection, EndpointConnections};

/// Connections of servers, open or waiting for their turn. A node has one or two servers.
pub(crate) const MAX_CONNECTIONS: usize = 16;

/// Pause between two connections. The last of [`MAX_CONNECTIONS`] that wait is admitted before its client gives up after
/// 10 s.
const PAUSE: Duration = Duration::from_millis(500);

/// Admits connections of servers.
#[derive(Debug)]
pub(crate) struct Admission {
    connections: EndpointConnections,
    free: Arc<Semaphore>,
    turns: Mutex<Interval>,
}

/// An admitted connection, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct AdmittedConnection {
    _connection: EndpointConnection,
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    pub(crate) fn new(connections: EndpointConnections) -> Self {
        let mut turns = interval(PAUSE);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            connections,
            free: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            turns: Mutex::new(turns),
        }
    }

    /// Begins a connection of the server at `endpoints`, after those that wait already; `None` if there are too many.
    pub(super) async fn admit(
        &self,
        endpoints: BTreeSet<SocketAddr>,
    ) -> Option<AdmittedConnection> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        self.turns.lock().await.tick().await;
        let names: Vec<String> = endpoints.iter().map(SocketAddr::to_string).collect();
        tracing::info!(
            "the server at {} is connected to this agent",
            names.join(", ")
        );
        Some(AdmittedConnection {
            _connection: self.connections.connect(endpoints),
            _permit: permit,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::*;

    fn admission() -> Admission {
        Admission::new(EndpointConnections::default())
    }

    fn endpoints() -> BTreeSet<SocketAddr> {
        [([10, 244, 1, 10], 53).into()].into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_connects_again_and_again_is_admitted_twice_a_second() {
        let admission = admission();
        // A quiet time permits no burst.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let began = Instant::now();
        for _ in 0..21 {
            admission.admit(endpoints()).await.unwrap();
        }
        let took = began.elapsed().as_millis();
        assert!((10_000..10_100).contains(&took), "{took} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_servers_at_the_same_time_those_within_the_limit_are_admitted_within_8_s() {
        let admission = admission();
        let began = Instant::now();
        let admitted = join_all((0..20).map(|_| admission.admit(endpoints()))).await;
        assert_eq!(admitted.iter().flatten().count(), MAX_CONNECTIONS);
        assert!(began.elapsed() < Duration::from_secs(8));
    }
}
