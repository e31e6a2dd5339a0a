//! Serves TCP node ports on loopback addresses, which IPVS cannot (KP-VS-15): copies between a client on this node and the
//! Service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{set_socket_keepalive, set_socket_linger, set_tcp_keepidle};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::service_ports::{LoopbackPorts, Place};

/// Concurrent connections of all ports. Each has two sockets. Further clients wait.
const MAX_CONNECTIONS: usize = 8_192;
/// Concurrent connections of one port, so that the clients of one Service do not keep out those of another.
const MAX_OF_PORT: usize = 1_024;
/// How long the Service may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two accept attempts while the process has no free file descriptor.
const RETRY: Duration = Duration::from_millis(100);
/// How long a connection is idle before the kernel asks whether its other end is still there. Less than the 15 minutes
/// after which IPVS forgets an idle connection.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Serves the ports until the task is dropped.
pub(crate) async fn serve(ports: LoopbackPorts) {
    let targets = ports.clone();
    let all = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let server = move |listener, place| {
        let port = Port {
            place,
            targets: targets.clone(),
            own: Arc::new(Semaphore::new(MAX_OF_PORT)),
            all: Arc::clone(&all),
        };
        port.serve(listener)
    };
    ports.serve("loopback node port", server, drop).await;
}

/// A port that clients of this node connect to.
struct Port {
    place: Place,
    targets: LoopbackPorts,
    /// Counts the connections of this port.
    own: Arc<Semaphore>,
    /// Counts the connections of all ports.
    all: Arc<Semaphore>,
}

impl Port {
    async fn serve(self, listener: TcpListener) -> Infallible {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let own = permit(&self.own).await;
            let Ok((client, _)) = listener.accept().await else {
                sleep(RETRY).await;
                continue;
            };
            let all = permit(&self.all).await;
            // A port that is about to close has no target.
            if let Some(target) = self.targets.get(&self.place) {
                connections.spawn(async move {
                    forward(client, target).await;
                    drop((own, all));
                });
            }
        }
    }
}

/// Waits for a free connection.
async fn permit(limit: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // The semaphore is never closed.
    Arc::clone(limit).acquire_owned().await.ok()
}

/// Copies both ways until both ends have closed, or one has failed: then the other one is reset, as it would be without
/// this copy in between.
async fn forward(mut client: TcpStream, target: SocketAddr) {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(target)).await;
    let Ok(Ok(mut server)) = connected else {
        return reset(&client);
    };
    prepare(&client);
    prepare(&server);
    if copy_bidirectional(&mut client, &mut server).await.is_err() {
        reset(&client);
        reset(&server);
    }
}

/// Sends data at once, and detects a peer that is gone. A socket that is closed already has no use for either.
fn prepare(stream: &TcpStream) {
    drop(stream.set_nodelay(true));
    let _kept = set_socket_keepalive(stream, true);
    let _idle = set_tcp_keepidle(stream, KEEPALIVE);
}

/// Lets the peer see an error instead of the end of the data, as soon as the socket is dropped.
fn reset(stream: &TcpStream) {
    let _lingering = set_socket_linger(stream, Some(Duration::ZERO));
}

#[cfg(test)]
mod tests;
