//! Connections to the local API that servers on this node hold while they can answer.
//!
//! The kernel closes the connection of a process that ends, so the loop learns of it within milliseconds. An EndpointSlice
//! follows only after kubelet and the EndpointSlice controller.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

/// The connections of all servers. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndpointConnections(Arc<watch::Sender<ConnectedEndpoints>>);

/// The endpoints with a connection, and those whose last connection ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ConnectedEndpoints {
    /// With the number of connections: a new server may connect before the old one ends.
    open: BTreeMap<SocketAddr, usize>,
    /// Until a server connects again, or until they are forgotten.
    ended: BTreeSet<SocketAddr>,
}

/// One connection, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct EndpointConnection {
    connections: EndpointConnections,
    endpoints: BTreeSet<SocketAddr>,
}

impl EndpointConnections {
    /// Begins a connection of the server at `endpoints`.
    pub(crate) fn connect(&self, endpoints: BTreeSet<SocketAddr>) -> EndpointConnection {
        self.0.send_modify(|connected| connected.begin(&endpoints));
        EndpointConnection {
            connections: self.clone(),
            endpoints,
        }
    }

    /// Receives every change except those by [`Self::forget`].
    pub(crate) fn changes(&self) -> EndpointConnectionChanges {
        EndpointConnectionChanges(self.0.subscribe())
    }

    /// The endpoints whose last connection ended.
    pub(crate) fn ended(&self) -> BTreeSet<SocketAddr> {
        self.0.borrow().ended.clone()
    }

    /// Forgets that the connections of these endpoints ended.
    pub(crate) fn forget(&self, endpoints: &BTreeSet<SocketAddr>) {
        self.0.send_if_modified(|connected| {
            connected.ended.retain(|ended| !endpoints.contains(ended));
            false
        });
    }
}

impl Drop for EndpointConnection {
    fn drop(&mut self) {
        let Self {
            connections,
            endpoints,
        } = self;
        connections
            .0
            .send_modify(|connected| connected.end(endpoints));
    }
}

impl ConnectedEndpoints {
    fn begin(&mut self, endpoints: &BTreeSet<SocketAddr>) {
        for endpoint in endpoints {
            *self.open.entry(*endpoint).or_default() += 1;
            self.ended.remove(endpoint);
        }
    }

    fn end(&mut self, endpoints: &BTreeSet<SocketAddr>) {
        for endpoint in endpoints {
            let Some(count) = self.open.get_mut(endpoint) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.open.remove(endpoint);
                self.ended.insert(*endpoint);
            }
        }
    }
}

/// Receives changes of connections.
#[derive(Debug)]
pub(crate) struct EndpointConnectionChanges(watch::Receiver<ConnectedEndpoints>);

impl EndpointConnectionChanges {
    /// Waits for a change.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // Without a sender there is none.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn endpoint(number: u8) -> SocketAddr {
        SocketAddr::from(([10, 244, 1, number], 53))
    }

    #[derive(Debug, Clone)]
    enum Action {
        Connect(BTreeSet<u8>),
        /// Ends one of the open connections.
        Close(prop::sample::Index),
        Forget(u8),
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            prop::collection::btree_set(0_u8..3, 1..3).prop_map(Action::Connect),
            any::<prop::sample::Index>().prop_map(Action::Close),
            (0_u8..3).prop_map(Action::Forget),
        ]
    }

    proptest! {
        /// An endpoint has ended if its last connection was closed, and nothing happened to it since.
        #[test]
        fn an_endpoint_has_ended_from_its_last_close_until_it_connects_or_is_forgotten(
            actions in prop::collection::vec(action(), 0..40),
        ) {
            let connections = EndpointConnections::default();
            let mut open: Vec<EndpointConnection> = Vec::new();
            let mut ended = BTreeSet::new();
            for action in actions {
                match action {
                    Action::Connect(numbers) => {
                        let endpoints: BTreeSet<_> = numbers.into_iter().map(endpoint).collect();
                        ended.retain(|one| !endpoints.contains(one));
                        open.push(connections.connect(endpoints));
                    }
                    Action::Close(index) if !open.is_empty() => {
                        let closed = open.swap_remove(index.index(open.len())).endpoints.clone();
                        let still = |one: &SocketAddr| open.iter().any(|other| other.endpoints.contains(one));
                        ended.extend(closed.into_iter().filter(|one| !still(one)));
                    }
                    Action::Close(_) => {}
                    Action::Forget(number) => {
                        ended.remove(&endpoint(number));
                        connections.forget(&[endpoint(number)].into());
                    }
                }
                prop_assert_eq!(connections.ended(), ended.clone());
            }
            drop(open);
            prop_assert!(connections.0.borrow().open.is_empty());
        }
    }

    #[tokio::test]
    async fn the_loop_wakes_for_connections_and_not_for_what_it_forgets_itself() {
        let connections = EndpointConnections::default();
        let mut changes = connections.changes();
        let connection = connections.connect([endpoint(1)].into());
        changes.next().await;
        drop(connection);
        changes.next().await;
        connections.forget(&connections.ended());
        let woken = tokio::time::timeout(std::time::Duration::ZERO, changes.next()).await;
        assert!(woken.is_err());
    }
}
