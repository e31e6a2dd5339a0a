//! `ipvs-topo dns`: converts the command line to the options of the DNS server, and runs it.

mod agent_connection;
mod upstreams;

use std::net::SocketAddr;

use cluster::ServiceSelection;
use cluster::api::{ClientNodes, Delivery, NodeSource, Relists, WatchOptions};
use cluster::clock::Clock;
use dns_server::{NameServer, NameServerOptions, ResponderOptions, ServeError, SocketPurpose};
use telemetry::log::{self, Verbosity};

use self::agent_connection::AgentConnection;
use crate::args::DnsArgs;
use crate::args::values::NodeSourceArg;
use crate::exit::{ExitStatus, Failure};
use crate::runtime;

/// Runs the server until SIGTERM or SIGINT.
///
/// # Errors
/// The input cannot be read, or the address cannot be used.
pub fn run(args: &DnsArgs) -> Result<ExitStatus, Failure> {
    let upstreams = upstreams::read(&args.upstream, args.listen)?;
    let connection = AgentConnection::of(args)?;
    let verbosity = Verbosity {
        level: 0,
        crates: &["dns_server", "cluster", "kube_io"],
    };
    log::start(args.log_format, verbosity);
    telemetry::raise_file_limit();
    runtime::block_on(work(args, upstreams, connection))
}

async fn work(
    args: &DnsArgs,
    upstreams: Vec<SocketAddr>,
    connection: Option<AgentConnection>,
) -> Result<ExitStatus, Failure> {
    let source = args.origin.get().watch(watch_options(args))?;
    let server = NameServer::bind(options(args, upstreams))
        .await
        .map_err(failure)?;
    let stop = telemetry::stop_signal().map_err(Failure::trouble)?;
    if let Some(address) = server.metrics_address() {
        tracing::info!("metrics on {address}");
    }
    if let Some(address) = server.health_address() {
        tracing::info!("health on {address}");
    }
    tracing::info!(
        "answering for {} on {} (UDP and TCP), for clients of node {}",
        args.domain,
        server.address(),
        args.node
    );
    let (port, readiness) = (server.address().port(), server.readiness());
    tokio::select! {
        ended = server.run(source, stop) => ended.map_err(failure)?,
        never = agent_connection::keep(connection, port, readiness) => match never {},
    }
    Ok(ExitStatus::Fine)
}

/// The failure, with the option that opens another socket.
fn failure(error: ServeError) -> Failure {
    let option = match &error {
        ServeError::Bind { purpose, .. } => match purpose {
            SocketPurpose::Udp | SocketPurpose::Tcp => "--listen",
            SocketPurpose::Metrics => "--metrics-bind-address",
            SocketPurpose::Health => "--healthz-bind-address",
        },
        ServeError::Socket(_) | ServeError::Source => return Failure::trouble(error),
    };
    Failure::trouble(format_args!(
        "{error}; free the port, or choose another address with {option}"
    ))
}

/// Clients of every node may ask. So all labels of all Nodes are read, or those in the map, which has the labels of each
/// `nodeSelector`.
fn watch_options(args: &DnsArgs) -> WatchOptions {
    let own = args.node.as_str().into();
    WatchOptions {
        nodes: match args.node_source {
            NodeSourceArg::Nodes => NodeSource::Whole,
            NodeSourceArg::Map => NodeSource::Map { own },
        },
        clients: ClientNodes::All,
        delivery: Delivery::AtOnce,
        relists: Relists::Confirm,
        allowed: args.allow_lists().get(),
        services: ServiceSelection::All,
        clock: Clock::system(),
    }
}

fn options(args: &DnsArgs, upstreams: Vec<SocketAddr>) -> NameServerOptions {
    NameServerOptions {
        listen: args.listen,
        responder: ResponderOptions {
            domain: args.domain.clone(),
            ttl: args.ttl,
            node: args.node.as_str().into(),
            endpoints: endpoints(args),
        },
        upstreams,
        metrics: args.metrics_bind_address,
        health: args.healthz_bind_address,
    }
}

/// The server as an endpoint of Services. No endpoint has a loopback address, or that of all interfaces.
fn endpoints(args: &DnsArgs) -> Vec<SocketAddr> {
    let addresses = args.endpoint_addresses().into_iter();
    let usable = addresses.filter(|address| !address.is_unspecified() && !address.is_loopback());
    let port = args.listen.port();
    usable
        .map(|address| SocketAddr::new(address, port))
        .collect()
}
