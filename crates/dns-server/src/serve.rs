//! Opens the sockets, and runs until the caller stops it.

use std::fmt;
use std::net::SocketAddr;

use cluster::source::Watch;
use dns::ResponderOptions;
use hickory_server::Server;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;

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
/// the time.
async fn follow(mut source: Watch, handler: Handler) {
    while let Some(batch) = source.next().await {
        let took = handler.apply(batch);
        if handler.state.is_read() {
            tokio::time::sleep(3 * took).await;
        }
    }
}
