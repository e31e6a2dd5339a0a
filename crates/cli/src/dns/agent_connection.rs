//! The connection of the DNS server to the agent on its node.
//!
//! The kernel closes it when this process ends, so the agent learns of the end before the EndpointSlice does.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use agent_api::client;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::args::DnsArgs;
use crate::exit::Failure;

/// Pause before a connection that the agent ended is made again. Until then the server gets no queries, unless the agent
/// ended, too.
const REOPEN: Duration = Duration::from_millis(50);

/// Pause after an attempt that failed.
const RETRY: Duration = Duration::from_secs(1);

/// The agent, and the addresses that it gets.
#[derive(Debug)]
pub(super) struct AgentConnection {
    /// The agent's socket.
    socket: PathBuf,
    /// Where clients reach the server.
    addresses: Vec<IpAddr>,
}

impl AgentConnection {
    /// The connection that the options ask for, if any.
    ///
    /// # Errors
    /// The options do not name the addresses.
    pub(super) fn of(args: &DnsArgs) -> Result<Option<Self>, Failure> {
        let Some(socket) = args.agent_socket.clone() else {
            return Ok(None);
        };
        let addresses = args.endpoint_addresses();
        if addresses.iter().any(IpAddr::is_unspecified) {
            return Err(Failure::input(
                "--agent-socket needs the addresses that clients reach: write --endpoint with those of the pod, such as \
                 --endpoint $(POD_IPS) with POD_IPS from status.podIPs",
            ));
        }
        Ok(Some(Self { socket, addresses }))
    }
}

/// Connects as soon as the server at `port` can answer, and again whenever the connection ends. Without a connection to
/// keep it waits forever.
pub(super) async fn keep(
    connection: Option<AgentConnection>,
    port: u16,
    mut readiness: watch::Receiver<bool>,
) -> Infallible {
    // Without a sender the server ends.
    let is_ready = readiness.wait_for(|ready| *ready).await.is_ok();
    let Some(AgentConnection { socket, addresses }) = connection.filter(|_| is_ready) else {
        return std::future::pending().await;
    };
    let endpoints = addresses.into_iter().map(|ip| SocketAddr::new(ip, port));
    let endpoints: Vec<SocketAddr> = endpoints.collect();
    let mut reported = String::new();
    loop {
        let opened = || tracing::info!("the agent at {} is connected", socket.display());
        let pause = match client::hold_endpoints(&socket, &endpoints, opened).await {
            Ok(()) => {
                reported.clear();
                tracing::info!("the agent ended the connection; connecting again");
                REOPEN
            }
            Err(error) => {
                let error = error.to_string();
                if reported != error {
                    tracing::warn!(
                        "no connection to the agent: {error}; tried again every second, and until then the agent does not \
                         notice at once when this server ends"
                    );
                    reported = error;
                }
                RETRY
            }
        };
        sleep(pause).await;
    }
}
