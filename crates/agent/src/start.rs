//! `ipvs-topo agent`: the loop, and around it the servers through which it is read.

use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum as _;
use clap::builder::PossibleValue;
use cluster::api::SyncStatus;
use dataplane::lock::{Lock, NamespaceLock};
use dataplane::preflight;
use serde_json::json;
use telemetry::log::{self, Verbosity};
use tokio::task::JoinSet;

use crate::agent_status::reporter;
use crate::api::socket::{self, Socket};
use crate::api::{self, Api};
use crate::cli::AgentArgs;
use crate::cli::exit::{ExitStatus, Failure};
use crate::cli::proxy_config::change;
use crate::cli::values::NodesFrom;
use crate::health::watched::Watched;
use crate::metrics::Metrics;
use crate::metrics::collect::Collector;
use crate::origin::Origin;
use crate::run::{AgentConfig, StartError};
use crate::state::{AgentHandle, channel};
use crate::{health, metrics, run, runtime, serve};

/// Runs the agent until SIGTERM or SIGINT; the data plane goes on serving without it.
///
/// # Errors
/// The input cannot be read, another agent runs, or IPVS cannot be used; later, the file of `--config` asks for
/// something else than at the start.
pub fn run(args: &AgentArgs) -> Result<ExitStatus, Failure> {
    let started = Instant::now();
    let given = args;
    let mut args = given.clone();
    let unfollowed = args.configure()?;
    let verbosity = Verbosity {
        level: args.verbose,
        crates: &["agent", "cluster", "kube_io"],
    };
    log::start(args.log_format, verbosity);
    for line in unfollowed {
        tracing::warn!("{line}");
    }
    telemetry::raise_file_limit();
    let superseded = change::wait(given, &args);
    runtime::block_on(work(&args, superseded, started))
}

async fn work(
    args: &AgentArgs,
    superseded: impl Future<Output = String>,
    started: Instant,
) -> Result<ExitStatus, Failure> {
    // The user's mistake is told before the machine's.
    let source = args.origin.get().watch(args.following())?;
    let board = source.sync_status().cloned();
    preflight::permission().map_err(Failure::trouble)?;
    // Held until the agent ends; taken before the socket of another agent could be replaced.
    let _lock = Lock::acquire(&args.state_dir).map_err(Failure::trouble)?;
    let _namespace = NamespaceLock::acquire().map_err(Failure::trouble)?;
    let Socket { listener, file } = socket::listen(&args.socket)
        .await
        .map_err(Failure::trouble)?;
    let (handle, ends) = channel();
    let metrics = Metrics::new();
    // Dropped with the loop's end: the tasks stop, and the socket's file goes.
    let _file = file;
    let mut servers = JoinSet::new();
    let api = api::router(Arc::new(api(args, &handle, board.clone(), started)));
    servers.spawn(async move {
        if let Err(error) = axum::serve(listener, api).await {
            tracing::error!(%error, "local API ended");
        }
    });
    let tcp_servers = TcpServers {
        handle: &handle,
        board: board.as_ref(),
        metrics: &metrics,
        started,
    };
    tcp_servers.listen(&mut servers, args);
    if let (Origin::Api(access), Some(board)) = (args.origin.get(), board) {
        let node = args.node_name.as_str().into();
        servers.spawn(reporter::keep(access, node, handle.clone(), board));
    }
    let data_plane = run::run(config(args), source, metrics, ends, superseded);
    end_of(data_plane, &mut servers).await
}

/// How the agent ends: with its data plane, or with the first server that panics.
async fn end_of(
    data_plane: impl Future<Output = Result<Option<String>, StartError>>,
    servers: &mut JoinSet<()>,
) -> Result<ExitStatus, Failure> {
    let ended = tokio::select! {
        ended = data_plane => ended,
        why = first_panic(servers) => return Err(Failure::trouble(why)),
    };
    match ended.map_err(Failure::trouble)? {
        None => Ok(ExitStatus::Fine),
        Some(why) => Err(Failure::trouble(why)),
    }
}

/// Waits until a task panics: without it the agent would look sound and answer no probe or report nothing.
async fn first_panic(servers: &mut JoinSet<()>) -> String {
    loop {
        match servers.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                return format!(
                    "a server of the agent ended: {error}; the data plane goes on serving"
                );
            }
            // A task that has done what it was for.
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

/// Serves health and metrics over TCP.
struct TcpServers<'a> {
    handle: &'a AgentHandle,
    board: Option<&'a SyncStatus>,
    metrics: &'a Metrics,
    started: Instant,
}

impl TcpServers<'_> {
    /// The two servers on TCP, as far as they are wanted.
    fn listen(&self, servers: &mut JoinSet<()>, args: &AgentArgs) {
        let (handle, board) = (self.handle.clone(), self.board.cloned());
        if let Some(address) = args.healthz_bind_address.0 {
            let watched = Watched::new(handle.clone(), board.clone());
            let router = health::router(watched, self.metrics.clone());
            let flag = "--healthz-bind-address";
            servers.spawn(serve::tcp("health", flag, address, router));
        }
        if let Some(address) = args.metrics_bind_address.0 {
            let collector = Collector::new(handle, board, self.started);
            servers.spawn(collector.clone().watch_start());
            let router = metrics::http::router(self.metrics.clone(), configz(args), collector);
            let flag = "--metrics-bind-address";
            servers.spawn(serve::tcp("metrics", flag, address, router));
        }
    }
}

fn api(args: &AgentArgs, handle: &AgentHandle, board: Option<SyncStatus>, started: Instant) -> Api {
    let name = || args.origin.get().to_string();
    Api {
        handle: handle.clone(),
        node: args.node_name.as_str().into(),
        source: board
            .as_ref()
            .map_or_else(name, |board| board.server().to_owned()),
        board,
        started,
    }
}

fn config(args: &AgentArgs) -> AgentConfig {
    AgentConfig {
        node: args.node_name.as_str().into(),
        mapped: args.origin.cluster.is_none() && args.node_source == NodesFrom::Map,
        service_cidrs: args.service.service_cidr.clone(),
        node_ips: args.node_ip.clone(),
        scheduler: args.service.scheduler,
        check_period: args.check_period.0,
        drain_timeout: args.drain_timeout.0,
        state_dir: args.state_dir.clone(),
        sysctl_dir: args.sysctl_dir.clone(),
        adopt: args.adopt,
        ports: [args.healthz_bind_address, args.metrics_bind_address]
            .into_iter()
            .filter_map(|bind| Some(bind.0?.port()))
            .collect(),
        crash_after: args.crash_after,
    }
}

/// `/configz`: what kube-proxy would show of the fields that mean the same, and ours beside it (KP-HC-20).
fn configz(args: &AgentArgs) -> serde_json::Value {
    let address = |bind: crate::cli::values::BindAddress| {
        bind.0
            .map_or_else(String::new, |address| address.to_string())
    };
    let seconds = |period: crate::cli::values::Period| format!("{}s", period.0.as_secs_f64());
    json!({
        "kubeproxy.config.k8s.io": {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "ipvs",
            "hostnameOverride": args.node_name,
            "healthzBindAddress": address(args.healthz_bind_address),
            "metricsBindAddress": address(args.metrics_bind_address),
            "ipvs": {
                "scheduler": args.service.scheduler.name(),
                "syncPeriod": seconds(args.check_period),
            },
        },
        "ipvs-topo": {
            "config": args.config,
            "cluster": args.origin.cluster,
            "kubeconfig": args.origin.kubeconfig,
            "master": args.origin.master,
            "nodeSource": args.node_source.to_possible_value().as_ref().map(PossibleValue::get_name),
            "serviceCIDRs": args.service.service_cidr.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "nodeIPs": args.node_ip,
            "drainTimeout": seconds(args.drain_timeout),
            "stateDir": args.state_dir,
            "sysctlDir": args.sysctl_dir,
            "socket": args.socket,
            "adopt": args.adopt,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_panics_ends_the_agent_and_one_that_is_done_does_not() {
        let mut servers = JoinSet::new();
        servers.spawn(async {});
        let stopped = end_of(async { Ok(None) }, &mut servers).await;
        assert!(matches!(stopped, Ok(ExitStatus::Fine)), "{stopped:?}");
        servers.spawn(async {});
        servers.spawn(async { panic!("a bug in a server") });
        let ended = end_of(std::future::pending(), &mut servers).await;
        let words = format!("{:?}", ended.unwrap_err());
        assert!(words.contains("a server of the agent ended"), "{words}");
        assert!(words.contains("a bug in a server"), "{words}");
    }
}
