//! Receives the addresses that the node and the cluster depend on from other tasks.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use dataplane::infrastructure::NodeNetwork;
use tokio::sync::watch;
use topology_core::resolve::NodeInfrastructure;

/// The sources of these addresses besides the cluster's objects. Clones see each change once.
#[derive(Debug, Clone)]
pub(crate) struct InfrastructureChanges {
    pub(crate) network: watch::Receiver<NodeNetwork>,
    /// Where the watches are connected to; `None` if the cluster is read from files.
    pub(crate) api_servers: Option<watch::Receiver<Vec<SocketAddr>>>,
}

impl InfrastructureChanges {
    /// Waits for a change.
    pub(super) async fn changed(&mut self) {
        let Self {
            network,
            api_servers,
        } = self;
        tokio::select! {
            () = next_change(Some(network)) => {}
            () = next_change(api_servers.as_mut()) => {}
        }
    }

    /// Whether there are changes that [`Self::read`] has not returned.
    pub(super) fn has_changed(&self) -> bool {
        // A sender that is gone changes nothing any more.
        let is_changed = |changed: Result<bool, _>| changed.unwrap_or_default();
        let api_servers = self.api_servers.as_ref();
        is_changed(self.network.has_changed())
            || api_servers.is_some_and(|servers| is_changed(servers.has_changed()))
    }

    /// The present addresses, without the node's own.
    pub(super) fn read(&mut self) -> NodeInfrastructure {
        let NodeNetwork {
            gateways,
            resolvers,
        } = self.network.borrow_and_update().clone();
        let api_servers = self.api_servers.as_mut();
        let api_servers = api_servers.map(|servers| servers.borrow_and_update().clone());
        NodeInfrastructure {
            gateways,
            resolvers,
            api_servers: api_servers.into_iter().flatten().collect(),
            own: BTreeSet::new(),
        }
    }
}

/// Waits for the next change; without a sender there is none.
async fn next_change<T>(receiver: Option<&mut watch::Receiver<T>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
