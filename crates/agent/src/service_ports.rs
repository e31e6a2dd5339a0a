//! TCP ports that the agent itself opens for Services.
//!
//! The loop writes the desired ports of changed Services to [`ServicePorts`] and never waits. One task opens and closes
//! the ports. Each connection uses the present value of its port.

mod listeners;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use topology_core::model::ObjectName;

use self::listeners::{Listeners, RETRY};
pub(crate) use self::listeners::{OpenFailure, Place};

/// The health check node ports, with the number of local endpoints.
pub(crate) type HealthPorts = ServicePorts<usize>;

/// The loopback sockets of node ports, with the address at which the node itself reaches the Service.
pub(crate) type LoopbackPorts = ServicePorts<SocketAddr>;

/// The ports of all Services, each with a value of the type `T`. Clones share them. A change costs as much as the change.
#[derive(Debug)]
pub(crate) struct ServicePorts<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    /// Wakes the task.
    changed: Notify,
    /// The ports that cannot be opened, one line each.
    failures: watch::Sender<Vec<String>>,
}

#[derive(Debug)]
struct State<T> {
    ports: BTreeMap<ObjectName, BTreeMap<SocketAddr, T>>,
    /// Services whose ports may have to be opened or closed.
    changed: BTreeSet<ObjectName>,
}

impl<T> Clone for ServicePorts<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for ServicePorts<T> {
    fn default() -> Self {
        let state = State {
            ports: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
            failures: watch::Sender::new(Vec::new()),
        }))
    }
}

impl<T: Copy> ServicePorts<T> {
    /// Replaces the ports of a Service; without one it has none any more.
    pub(crate) fn replace(&self, service: &ObjectName, ports: BTreeMap<SocketAddr, T>) {
        let mut state = self.state();
        let is_empty = ports.is_empty();
        let before = if is_empty {
            state.ports.remove(service)
        } else {
            state.ports.insert(service.clone(), ports)
        };
        let after = state.ports.get(service);
        let has_same_ports = match (&before, after) {
            (None, None) => true,
            (Some(before), Some(after)) => before.keys().eq(after.keys()),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !has_same_ports {
            state.changed.insert(service.clone());
            self.0.changed.notify_one();
        }
    }

    /// The present value of a port.
    pub(crate) fn get(&self, (service, socket): &Place) -> Option<T> {
        self.state().ports.get(service)?.get(socket).copied()
    }

    /// Receives the ports that cannot be opened.
    pub(crate) fn failures(&self) -> watch::Receiver<Vec<String>> {
        self.0.failures.subscribe()
    }

    /// Opens the ports, and serves each with the future that `server` returns, until the task is dropped. `name` is what
    /// warnings call a port. `failed` receives the first port of each Service that has just failed to open.
    pub(crate) async fn serve<F>(
        self,
        name: &'static str,
        server: impl Fn(TcpListener, Place) -> F,
        mut failed: impl FnMut(OpenFailure),
    ) where
        F: Future<Output = Infallible> + Send + 'static,
    {
        let mut listeners = Listeners::new(name, server);
        let mut retry_at: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.0.changed.notified() => listeners.update(self.take_changed()).await,
                () = sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {
                    listeners.retry().await;
                    retry_at = None;
                }
                () = listeners.panicked() => {}
            }
            listeners
                .take_new_failures()
                .into_iter()
                .for_each(&mut failed);
            self.report(listeners.failures());
            if listeners.has_failures() {
                retry_at.get_or_insert_with(|| Instant::now() + RETRY);
            }
        }
    }

    /// The desired ports of the Services that changed since the last call.
    fn take_changed(&self) -> BTreeMap<ObjectName, BTreeSet<SocketAddr>> {
        let mut state = self.state();
        let changed = std::mem::take(&mut state.changed);
        let ports = changed.into_iter().map(|service| {
            let ports = state.ports.get(&service).into_iter().flatten();
            let sockets = ports.map(|(socket, _)| *socket).collect();
            (service, sockets)
        });
        ports.collect()
    }

    fn report(&self, failures: Vec<String>) {
        self.0.failures.send_if_modified(|published| {
            let is_news = *published != failures;
            *published = failures;
            is_news
        });
    }
}

impl<T> ServicePorts<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No code that holds the lock panics.
        let state = self.0.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
