//! Opens the sockets, and runs until the caller stops it.

use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use cluster::event::Batch;
use cluster::source::Watch;
use dns::ResponderOptions;
use hickory_server::Server;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::connections;
use crate::handler::Handler;
use crate::http_status::{self, HttpStatus};

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct NameServerOptions {
    pub listen: SocketAddr,
    pub responder: ResponderOptions,
    /// Where to ask about other names. Without one they are refused.
    pub upstreams: Vec<SocketAddr>,
    /// Where to serve `/metrics` over HTTP, if at all.
    pub metrics: Option<SocketAddr>,
    /// Where to serve `/healthz`, `/livez` and `/readyz` over HTTP, if at all.
    pub health: Option<SocketAddr>,
}

/// Why a server cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address} ({purpose}): {error}")]
    Bind {
        address: SocketAddr,
        purpose: SocketPurpose,
        error: std::io::Error,
    },
    #[error("the UDP socket failed: {0}")]
    Socket(String),
    /// The thread that reads the cluster has ended.
    #[error("the cluster is not read any more")]
    Source,
}

/// What clients use a socket for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketPurpose {
    Udp,
    Tcp,
    Metrics,
    Health,
}

impl fmt::Display for SocketPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Metrics => "metrics",
            Self::Health => "health",
        })
    }
}

/// A server whose sockets are open.
#[derive(Debug)]
pub struct NameServer {
    udp: UdpSocket,
    tcp: TcpListener,
    address: SocketAddr,
    metrics: Option<TcpListener>,
    health: Option<TcpListener>,
    handler: Handler,
}

impl NameServer {
    /// Opens the sockets.
    pub async fn bind(options: NameServerOptions) -> Result<Self, ServeError> {
        let failed = |address, purpose| {
            move |error| ServeError::Bind {
                address,
                purpose,
                error,
            }
        };
        let tcp_failed = failed(options.listen, SocketPurpose::Tcp);
        let tcp = TcpListener::bind(options.listen).await;
        let tcp = tcp.map_err(tcp_failed)?;
        let address = tcp.local_addr().map_err(tcp_failed)?;
        let udp = UdpSocket::bind(address).await;
        let udp = udp.map_err(failed(address, SocketPurpose::Udp))?;
        let listen = |address: Option<SocketAddr>, purpose| {
            let bound =
                address.map(|address| telemetry::listen(address).map_err(failed(address, purpose)));
            bound.transpose()
        };
        Ok(Self {
            udp,
            tcp,
            address,
            metrics: listen(options.metrics, SocketPurpose::Metrics)?,
            health: listen(options.health, SocketPurpose::Health)?,
            handler: Handler::new(options.responder, options.upstreams),
        })
    }

    /// The address of both sockets.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of `/metrics`, if it is served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// The address of `/healthz`, `/livez` and `/readyz`, if they are served.
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health.as_ref()?.local_addr().ok()
    }

    /// Whether the server can answer for the names of the cluster.
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.handler.state.readiness()
    }

    /// Answers until `stop` completes. Until the cluster is read, its names have no answer.
    pub async fn run(
        self,
        source: Watch,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let connections = connections::limit();
        let status = HttpStatus {
            handler: self.handler.clone(),
            connections: connections.clone(),
            sync_status: source.sync_status().cloned(),
        };
        let mut server = Server::new(self.handler.clone());
        server.register_socket(self.udp);
        tokio::select! {
            () = stop => Ok(()),
            () = follow(source, self.handler.clone()) => Err(ServeError::Source),
            () = connections::accept(self.tcp, self.handler, connections) => Ok(()),
            never = http_status::serve(self.metrics, status.clone().metrics()) => match never {},
            never = http_status::serve(self.health, status.health()) => match never {},
            ended = server.block_until_done() => {
                let closed = |()| "it was closed".to_owned();
                let why = ended.map_or_else(|error| error.to_string(), closed);
                Err(ServeError::Socket(why))
            }
        }
    }
}

/// Applies changes until the source ends. Queries wait meanwhile, so after the first list this takes at most a quarter of
/// the time. What comes in the rest is applied together: a Service that changes all the time costs once, and other
/// changes do not queue behind it.
async fn follow(mut source: Watch, handler: Handler) {
    let mut pause = Duration::ZERO;
    while let Some(batches) = next_batches(&mut source, pause).await {
        let took = handler.apply(batches);
        if handler.state.is_read() {
            pause = 3 * took;
        }
    }
}

/// Receives during the pause, and longer if nothing comes. `None` if the source has ended.
async fn next_batches(source: &mut Watch, pause: Duration) -> Option<Vec<Batch>> {
    let mut pause = pin!(sleep(pause));
    let mut batches = vec![source.next().await?];
    loop {
        tokio::select! {
            biased;
            batch = source.next() => batches.push(batch?),
            () = &mut pause => return Some(batches),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cluster::event::FileReport;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    fn report(file: &str) -> Batch {
        let report = FileReport {
            file: file.into(),
            warnings: Vec::new(),
            skipped: BTreeMap::new(),
        };
        Batch::from(report)
    }

    /// The files of the reports.
    fn files(batches: Option<Vec<Batch>>) -> Vec<String> {
        let batches = batches.unwrap();
        let reports = batches.into_iter().flat_map(|batch| batch.reports);
        reports.map(|report| report.file.to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_come_while_queries_have_their_turn_are_applied_together() {
        let (sender, batches) = mpsc::channel(1);
        let mut source = Watch::of(batches);
        let tenant = tokio::spawn(async move {
            for file in ["a", "b", "c"] {
                sender.send(report(file)).await.unwrap();
                sleep(Duration::from_millis(400)).await;
            }
        });
        let pause = Duration::from_millis(500);
        let begin = Instant::now();
        assert_eq!(files(next_batches(&mut source, pause).await), ["a", "b"]);
        assert_eq!(begin.elapsed(), pause);
        let nothing = Duration::ZERO;
        assert_eq!(files(next_batches(&mut source, nothing).await), ["c"]);
        assert_eq!(begin.elapsed(), Duration::from_millis(800));
        tenant.await.unwrap();
        assert!(next_batches(&mut source, nothing).await.is_none());
    }
}
