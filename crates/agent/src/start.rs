//! `ipvs-topo agent`: the loop, and around it the servers through which it is read.

use std::sync::Arc;
use std::time::Instant;

use cluster::source::ReadError;
use serde_json::json;
use tokio::task::JoinSet;

use crate::api::socket::{self, Socket};
use crate::api::{self, Api};
use crate::cli::AgentArgs;
use crate::cli::exit::{Failure, Outcome};
use crate::health::watched::Watched;
use crate::metrics::Metrics;
use crate::metrics::collect::Collector;
use crate::run::{AgentConfig, StartError};
use crate::state::{AgentHandle, channel};
use crate::{client, health, log, metrics, preflight, run, serve};

/// Runs the agent until SIGTERM or SIGINT; the data plane goes on serving without it.
///
/// # Errors
/// The input cannot be read, another agent runs, or IPVS cannot be used.
pub fn run(args: &AgentArgs) -> Result<Outcome, Failure> {
    let started = Instant::now();
    log::start(args.log_format, args.verbose);
    client::block_on(work(args, started))
}

async fn work(args: &AgentArgs, started: Instant) -> Result<Outcome, Failure> {
    // The user's mistake is told before the machine's.
    std::fs::metadata(&args.cluster).map_err(|source| {
        Failure::input(ReadError::Path {
            path: args.cluster.clone(),
            source,
        })
    })?;
    preflight::permission().map_err(failure)?;
    let Socket { listener, file } = socket::listen(&args.socket)
        .await
        .map_err(Failure::trouble)?;
    let (handle, ends) = channel();
    let metrics = Metrics::new();
    // Dropped with the loop's end: the tasks stop, and the socket's file goes.
    let _file = file;
    let mut servers = JoinSet::new();
    let api = api::router(Arc::new(api(args, &handle, started)));
    servers.spawn(async move {
        if let Err(error) = axum::serve(listener, api).await {
            tracing::error!(%error, "local API ended");
        }
    });
    listen(&mut servers, args, &handle, &metrics, started);
    let ended = run::run(config(args), metrics, ends).await;
    ended.map(|()| Outcome::Fine).map_err(failure)
}

/// The two servers on TCP, as far as they are wanted.
fn listen(
    servers: &mut JoinSet<()>,
    args: &AgentArgs,
    handle: &AgentHandle,
    metrics: &Metrics,
    started: Instant,
) {
    if let Some(address) = args.healthz_bind_address.0 {
        let router = health::router(Watched::new(handle.clone()), metrics.clone());
        servers.spawn(serve::tcp(
            "health",
            "--healthz-bind-address",
            address,
            router,
        ));
    }
    if let Some(address) = args.metrics_bind_address.0 {
        let collector = Collector::new(handle.clone(), started);
        servers.spawn(collector.clone().watch_start());
        let router = metrics::http::router(metrics.clone(), configz(args), collector);
        servers.spawn(serve::tcp(
            "metrics",
            "--metrics-bind-address",
            address,
            router,
        ));
    }
}

fn api(args: &AgentArgs, handle: &AgentHandle, started: Instant) -> Api {
    Api {
        handle: handle.clone(),
        node: args.node_name.as_str().into(),
        source: args.cluster.clone(),
        started,
    }
}

fn config(args: &AgentArgs) -> AgentConfig {
    AgentConfig {
        node: args.node_name.as_str().into(),
        cluster: args.cluster.clone(),
        service_cidrs: args.service.service_cidr.clone(),
        node_ips: args.node_ip.clone(),
        scheduler: args.service.scheduler.as_str().into(),
        check_period: args.check_period.0,
        drain_timeout: args.drain_timeout.0,
        state_dir: args.state_dir.clone(),
        adopt: args.adopt,
        crash_after: args.crash_after,
    }
}

/// Input that cannot be read is the user's to correct; everything else is the machine's.
fn failure(error: StartError) -> Failure {
    match error {
        StartError::Source(error) => Failure::input(error),
        other => Failure::trouble(other),
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
                "scheduler": args.service.scheduler,
                "syncPeriod": seconds(args.check_period),
            },
        },
        "ipvs-topo": {
            "cluster": args.cluster,
            "serviceCIDRs": args.service.service_cidr.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "nodeIPs": args.node_ip,
            "drainTimeout": seconds(args.drain_timeout),
            "stateDir": args.state_dir,
            "socket": args.socket,
            "adopt": args.adopt,
        },
    })
}
