//! `ipvs-topo agent`: runs the loop and the servers that read it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use cluster::api::SyncStatus;
use cluster::source::Watch;
use dataplane::lock::{Lock, NamespaceLock};
use dataplane::preflight;
use kube_io::Access;
use tokio::task::JoinSet;

use crate::agent_config::AgentConfig;
use crate::agent_status::reporter;
use crate::api::admission::Admission;
use crate::api::context::Api;
use crate::api::socket::{self, Socket};
use crate::endpoint_connections::EndpointConnections;
use crate::health::watched::Watched;
use crate::metrics::Metrics;
use crate::metrics::collect::Collector;
use crate::node_events::{NodeEvent, NodeEvents};
use crate::serve::{HEALTH, METRICS, Port};
use crate::start_error::StartError;
use crate::state::{AgentHandle, channel};
use crate::{api, health, loopback_node_ports, metrics, node_events, run, service_health};

/// The options of the agent. The command line sets the defaults.
#[derive(Debug)]
pub struct AgentOptions {
    pub config: AgentConfig,
    /// The source of the cluster, for people. An API server's own address takes precedence.
    pub source: String,
    /// The API server that gets the node's report; none for files.
    pub access: Option<Access>,
    pub socket: PathBuf,
    /// The address of /healthz and /livez, if enabled.
    pub healthz_address: Option<SocketAddr>,
    /// The address of /metrics, if enabled.
    pub metrics_address: Option<SocketAddr>,
    /// Whether the agent exits if an address cannot be bound.
    pub bind_hard_fail: bool,
    /// The response of /configz.
    pub configz: serde_json::Value,
    pub started: Instant,
}

/// Runs the agent until SIGTERM or SIGINT, or until `superseded` returns a reason to exit, which is
/// returned. The data plane keeps serving without the agent.
///
/// # Errors
/// Another agent runs, IPVS or the socket cannot be used, or a server panicked.
pub async fn run(
    options: AgentOptions,
    source: Watch,
    superseded: impl Future<Output = String>,
) -> Result<Option<String>, StartError> {
    let sync_status = source.sync_status().cloned();
    preflight::permission()?;
    // Held until the agent exits; acquired before another agent's socket could be replaced.
    let _lock = Lock::acquire(&options.config.state_dir)?;
    let _namespace = NamespaceLock::acquire()?;
    let Socket { listener, file } = socket::listen(&options.socket).await?;
    let (handle, ends) = channel();
    let metrics = Metrics::new();
    // Dropped with the loop: the tasks stop, and the socket's file is removed.
    let _file = file;
    let mut servers = JoinSet::new();
    let connections = ends.endpoint_connections.clone();
    let api = api(&options, &handle, sync_status.clone(), connections);
    servers.spawn(async move { match api::serve(listener, api).await {} });
    let (events, recorded) = NodeEvents::channel();
    events.record(NodeEvent::starting());
    let tcp_servers = TcpServers {
        handle: &handle,
        sync_status: sync_status.as_ref(),
        metrics: &metrics,
        events: events.clone(),
    };
    tcp_servers.listen(&mut servers, &options)?;
    let watched = Watched::new(handle.clone(), sync_status.clone());
    let node = Arc::clone(&options.config.node);
    let health_checks = service_health::serve(ends.health_ports.clone(), watched, node, events);
    servers.spawn(health_checks);
    if options.config.node_port_addresses.has_localhost() {
        tracing::info!(
            "TCP node ports are served on loopback addresses; those of UDP and SCTP are not"
        );
        servers.spawn(loopback_node_ports::serve(ends.loopback_ports.clone()));
    }
    if let (Some(access), Some(sync_status)) = (options.access, sync_status) {
        let node = || Arc::clone(&options.config.node);
        let events = node_events::keep(access.clone(), node(), sync_status.clone(), recorded);
        servers.spawn(events);
        servers.spawn(reporter::keep(access, node(), handle.clone(), sync_status));
    }
    let data_plane = run::run(options.config, source, metrics, ends, superseded);
    end_of(data_plane, &mut servers).await
}

/// Ends with the data plane, or with the first server that panics.
async fn end_of(
    data_plane: impl Future<Output = Result<Option<String>, StartError>>,
    servers: &mut JoinSet<()>,
) -> Result<Option<String>, StartError> {
    tokio::select! {
        ended = data_plane => ended,
        why = first_panic(servers) => Err(StartError::Panic(why)),
    }
}

/// Waits until a task panics: otherwise the agent would seem healthy without answering probes or reporting.
async fn first_panic(servers: &mut JoinSet<()>) -> String {
    loop {
        match servers.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                return format!(
                    "a server of the agent ended: {error}; the data plane goes on serving"
                );
            }
            // A task that has finished its work.
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

/// Serves health and metrics over TCP.
struct TcpServers<'a> {
    handle: &'a AgentHandle,
    sync_status: Option<&'a SyncStatus>,
    metrics: &'a Metrics,
    events: NodeEvents,
}

impl TcpServers<'_> {
    /// The two TCP servers, if enabled.
    fn listen(&self, servers: &mut JoinSet<()>, options: &AgentOptions) -> Result<(), StartError> {
        let (handle, sync_status) = (self.handle.clone(), self.sync_status.cloned());
        if let Some(address) = options.healthz_address {
            let watched = Watched::new(handle.clone(), sync_status.clone());
            let router = health::router(watched, self.metrics.clone());
            let port = Port::new(&HEALTH, address, options.bind_hard_fail)?;
            servers.spawn(port.serve(router, self.events.clone()));
        }
        if let Some(address) = options.metrics_address {
            let collector = Collector::new(handle, sync_status, options.started);
            servers.spawn(collector.clone().watch_start());
            let router =
                metrics::http::router(self.metrics.clone(), options.configz.clone(), collector);
            let port = Port::new(&METRICS, address, options.bind_hard_fail)?;
            servers.spawn(port.serve(router, self.events.clone()));
        }
        Ok(())
    }
}

fn api(
    options: &AgentOptions,
    handle: &AgentHandle,
    sync_status: Option<SyncStatus>,
    endpoint_connections: EndpointConnections,
) -> Api {
    let name = || options.source.clone();
    Api {
        handle: handle.clone(),
        node: Arc::clone(&options.config.node),
        source: sync_status
            .as_ref()
            .map_or_else(name, |sync_status| sync_status.server().to_owned()),
        sync_status,
        started: options.started,
        admission: Admission::new(endpoint_connections),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_panics_ends_the_agent_and_one_that_returns_does_not() {
        let mut servers = JoinSet::new();
        servers.spawn(async {});
        let stopped = end_of(async { Ok(None) }, &mut servers).await;
        assert!(matches!(stopped, Ok(None)), "{stopped:?}");
        servers.spawn(async {});
        servers.spawn(async { panic!("a bug in a server") });
        let ended = end_of(std::future::pending(), &mut servers).await;
        let words = ended.unwrap_err().to_string();
        assert!(words.contains("a server of the agent ended"), "{words}");
        assert!(words.contains("a bug in a server"), "{words}");
    }
}
