//! Opens and closes ports.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinError, JoinSet, yield_now};
use topology_core::model::ObjectName;

/// Pause before ports that cannot be opened are tried again.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// A port of a Service.
pub(crate) type Place = (ObjectName, SocketAddr);

/// A port that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenFailure {
    pub(crate) place: Place,
    pub(crate) error: String,
}

/// Most ports that are named in warnings; the rest are counted.
const MAX_FAILURES: usize = 20;
/// Ports that are opened before other tasks run.
const BETWEEN_YIELDS: usize = 64;

/// The open ports, and those that cannot be opened.
pub(super) struct Listeners<S> {
    name: &'static str,
    server: S,
    servers: JoinSet<Infallible>,
    open: BTreeMap<ObjectName, BTreeMap<SocketAddr, AbortHandle>>,
    failed: BTreeMap<Place, String>,
    /// The ports that have just failed, at most one of each Service.
    new_failures: BTreeMap<ObjectName, OpenFailure>,
}

impl<S, F> Listeners<S>
where
    S: Fn(TcpListener, Place) -> F,
    F: Future<Output = Infallible> + Send + 'static,
{
    pub(super) fn new(name: &'static str, server: S) -> Self {
        Self {
            name,
            server,
            servers: JoinSet::new(),
            open: BTreeMap::new(),
            failed: BTreeMap::new(),
            new_failures: BTreeMap::new(),
        }
    }

    /// Opens and closes the ports of changed Services. Those that stay keep their connections.
    pub(super) async fn update(&mut self, changed: BTreeMap<ObjectName, BTreeSet<SocketAddr>>) {
        let is_desired = |(service, socket): &Place| {
            let sockets = changed.get(service);
            sockets.is_none_or(|sockets| sockets.contains(socket))
        };
        self.failed.retain(|place, _| is_desired(place));
        let mut closed = Vec::new();
        for (service, sockets) in &changed {
            closed.extend(self.take_except(service, sockets));
        }
        self.close(&closed).await;
        // A port that moved to another Service is free now.
        let free: BTreeSet<u16> = closed.iter().map(|(socket, _)| socket.port()).collect();
        let failed = self.failed.keys();
        let freed = failed.filter(|(_, socket)| free.contains(&socket.port()));
        let freed: Vec<Place> = freed.cloned().collect();
        let desired = changed.into_iter().flat_map(|(service, sockets)| {
            let sockets = sockets.into_iter();
            sockets.map(move |socket| (service.clone(), socket))
        });
        self.open_all(freed.into_iter().chain(desired)).await;
    }

    /// Removes the open ports of `service` that are not in `sockets`.
    fn take_except(
        &mut self,
        service: &ObjectName,
        sockets: &BTreeSet<SocketAddr>,
    ) -> Vec<(SocketAddr, AbortHandle)> {
        let Some(open) = self.open.remove(service) else {
            return Vec::new();
        };
        let (kept, closed): (BTreeMap<_, _>, BTreeMap<_, _>) = open
            .into_iter()
            .partition(|(socket, _)| sockets.contains(socket));
        if !kept.is_empty() {
            self.open.insert(service.clone(), kept);
        }
        closed.into_iter().collect()
    }

    /// Closes ports and ends their connections. Afterwards the ports are free.
    async fn close(&mut self, closed: &[(SocketAddr, AbortHandle)]) {
        for (_, server) in closed {
            server.abort();
        }
        for _ in closed {
            if let Some(Err(ended)) = self.servers.join_next().await {
                pass_on_panic(ended);
            }
        }
    }

    /// Tries the ports again that cannot be opened.
    pub(super) async fn retry(&mut self) {
        let failed: Vec<Place> = self.failed.keys().cloned().collect();
        self.open_all(failed.into_iter()).await;
    }

    /// Opens ports, and lets other tasks run in between: there may be thousands.
    async fn open_all(&mut self, places: impl Iterator<Item = Place>) {
        for (number, place) in places.enumerate() {
            self.open(place);
            if number.is_multiple_of(BETWEEN_YIELDS) {
                yield_now().await;
            }
        }
    }

    fn open(&mut self, place: Place) {
        let (service, socket) = &place;
        let open = self.open.get(service);
        if open.is_some_and(|open| open.contains_key(socket)) {
            return;
        }
        match telemetry::listen_in_family(*socket) {
            Ok(listener) => {
                let server = (self.server)(listener, place.clone());
                let server = self.servers.spawn(server);
                self.failed.remove(&place);
                let (service, socket) = place;
                self.open.entry(service).or_default().insert(socket, server);
            }
            Err(error) => {
                let error = error.to_string();
                let failure = OpenFailure {
                    place: place.clone(),
                    error: error.clone(),
                };
                if self.failed.insert(place, error).is_none() {
                    let service = failure.place.0.clone();
                    self.new_failures.entry(service).or_insert(failure);
                }
            }
        }
    }

    /// The failures since the last call. A port that stays unavailable fails once.
    pub(super) fn take_new_failures(&mut self) -> Vec<OpenFailure> {
        std::mem::take(&mut self.new_failures)
            .into_values()
            .collect()
    }

    /// Panics if a server panics, so that the agent ends instead of refusing connections for ever. Does not return
    /// otherwise.
    pub(super) async fn panicked(&mut self) {
        match self.servers.join_next().await {
            Some(Err(ended)) => pass_on_panic(ended),
            Some(Ok(never)) => match never {},
            None => std::future::pending().await,
        }
    }

    pub(super) fn has_failures(&self) -> bool {
        !self.failed.is_empty()
    }

    /// The ports that cannot be opened, one line each.
    pub(super) fn failures(&self) -> Vec<String> {
        let Self { name, failed, .. } = self;
        let line = |((service, socket), error): (&Place, &String)| {
            let seconds = RETRY.as_secs();
            format!(
                "Service {service}: {name} {socket} cannot be opened: {error}; free the port; tried again every {seconds} s"
            )
        };
        let mut lines: Vec<String> = failed.iter().take(MAX_FAILURES).map(line).collect();
        let more = failed.len() - lines.len();
        if more > 0 {
            lines.push(format!("{more} more like these: {name}"));
        }
        lines
    }
}

fn pass_on_panic(ended: JoinError) {
    if let Ok(panic) = ended.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}
