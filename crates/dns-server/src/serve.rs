//! Opens the sockets, and runs until the caller stops it.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::source::Watch;
use dns::ResponderOptions;
use hickory_proto::rr::Name;
use hickory_server::Server;
use tokio::net::{TcpListener, UdpSocket};

use crate::cluster_state::ClusterState;
use crate::connections;
use crate::forwarder::Forwarder;
use crate::handler::Handler;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct NameServerOptions {
    pub listen: SocketAddr,
    /// The domain of the cluster, such as `cluster.local.`.
    pub domain: Name,
    /// The seconds for which clients may keep an answer.
    pub ttl: u32,
    /// The Node of clients whose address says nothing.
    pub node: Arc<str>,
    /// Where to ask about other names. Without one they are refused.
    pub upstreams: Vec<SocketAddr>,
}

/// Why a server cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address} ({protocol}): {error}")]
    Bind {
        address: SocketAddr,
        protocol: &'static str,
        error: std::io::Error,
    },
    #[error("the UDP socket failed: {0}")]
    Socket(String),
    /// The thread that reads the cluster has ended.
    #[error("the cluster is not read any more")]
    Source,
}

/// A server whose sockets are open.
#[derive(Debug)]
pub struct NameServer {
    udp: UdpSocket,
    tcp: TcpListener,
    address: SocketAddr,
    handler: Handler,
}

impl NameServer {
    /// Opens the sockets.
    pub async fn bind(options: NameServerOptions) -> Result<Self, ServeError> {
        let failed = |address, protocol| {
            move |error| ServeError::Bind {
                address,
                protocol,
                error,
            }
        };
        let tcp = TcpListener::bind(options.listen).await;
        let tcp = tcp.map_err(failed(options.listen, "TCP"))?;
        let address = tcp.local_addr().map_err(failed(options.listen, "TCP"))?;
        let udp = UdpSocket::bind(address).await;
        let udp = udp.map_err(failed(address, "UDP"))?;
        Ok(Self {
            udp,
            tcp,
            address,
            handler: Handler {
                state: ClusterState::new(ResponderOptions {
                    domain: options.domain,
                    ttl: options.ttl,
                    node: options.node,
                }),
                forwarder: Arc::new(Forwarder::new(options.upstreams)),
            },
        })
    }

    /// The address of both sockets.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` completes. Until the cluster is read, its names have no answer.
    pub async fn run(
        self,
        source: Watch,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let mut server = Server::new(self.handler.clone());
        server.register_socket(self.udp);
        let state = self.handler.state.clone();
        tokio::select! {
            () = stop => Ok(()),
            () = follow(source, state) => Err(ServeError::Source),
            () = connections::accept(self.tcp, self.handler) => Ok(()),
            ended = server.block_until_done() => {
                let error = ended.err().map(|error| error.to_string());
                Err(ServeError::Socket(error.unwrap_or_default()))
            }
        }
    }
}

/// Applies changes until the source ends.
async fn follow(mut source: Watch, state: ClusterState) {
    while let Some(batch) = source.next().await {
        state.apply(batch);
    }
}
