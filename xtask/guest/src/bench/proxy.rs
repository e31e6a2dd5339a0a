//! `guest bench proxy`: measures one node proxy on the API server of the host from outside.

mod api;
mod churn;
mod immediate_delete;
mod probe;
mod roll;
mod running;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use guest_wire::report::{ProxyChange, ProxyReport};
use guest_wire::{ProxyKind, Record};

pub(crate) use self::immediate_delete::ReplaceArgs;
pub(crate) use self::roll::RollArgs;

use self::api::Api;
use self::probe::Probe;
use self::running::RunningProxy;
use crate::output::{log, print_record};

/// `guest bench proxy`.
#[derive(clap::Args)]
pub(crate) struct ProxyArgs {
    /// The proxy to measure.
    #[arg(value_enum)]
    kind: ProxyKind,
    /// Its binary.
    #[arg(long)]
    binary: PathBuf,
    /// The kubeconfig with which it reaches the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Address of the host's `kubectl proxy`.
    #[arg(long)]
    api: std::net::SocketAddr,
    /// Number of Services in the cluster, without the probed one.
    #[arg(long)]
    services: u32,
    /// Number of endpoints of each Service.
    #[arg(long, default_value_t = 10)]
    endpoints: u32,
    /// Number of times that one endpoint is replaced.
    #[arg(long, default_value_t = 5)]
    changes: u32,
    /// Seconds of rolling updates of 1,000 endpoints a second.
    #[arg(long, requires = "roller")]
    churn: Option<u64>,
    /// Address of the host's `guest bench roll`.
    #[arg(long)]
    roller: Option<std::net::SocketAddr>,
}

/// Measures one proxy and prints its readings as one record.
pub(crate) fn measure(args: &ProxyArgs) -> Result<()> {
    let mut probe = Probe::prepare(Api::new(args.api))?;
    let traffic = probe::bytes_on_the_wire()?;
    let begin = Instant::now();
    let proxy = RunningProxy::start(args.kind, &args.binary, &args.kubeconfig)?;
    let start = begin.elapsed();
    proxy.check(args.services, args.endpoints)?;
    proxy.settle()?;
    let bytes = probe::bytes_on_the_wire()? - traffic;
    log(&format!("{}: started in {start:.2?}", args.kind.name()));
    let requests = running::requests()?;
    let memory = proxy.memory()?;
    let changes = (0..args.changes)
        .map(|_| change(&mut probe, &proxy))
        .collect::<Result<_>>()?;
    drop(proxy);
    let begin = Instant::now();
    let proxy = RunningProxy::start(args.kind, &args.binary, &args.kubeconfig)?;
    let restart = begin.elapsed();
    log(&format!("restarted in {restart:.2?}"));
    proxy.check(args.services, args.endpoints)?;
    if args.changes > 0 {
        // The first change of this process runs code that the emulator has already translated for the one before.
        proxy.settle()?;
        change(&mut probe, &proxy)?;
    }
    let mut churn = match (args.churn, args.roller) {
        (Some(seconds), Some(roller)) => {
            let duration = Duration::from_secs(seconds);
            Some(churn::run(
                args.endpoints,
                &mut probe,
                &proxy,
                roller,
                duration,
            )?)
        }
        _ => None,
    };
    drop(proxy);
    if let Some(churn) = &mut churn {
        churn.immediate_delete =
            immediate_delete::measure(args.services, args.endpoints, churn.changes)?;
        log(&format!(
            "churn: a bare loop that deletes at once needs {:.1} s of CPU for it",
            churn.immediate_delete
        ));
    }
    let report = ProxyReport {
        name: args.kind.name().to_owned(),
        services: args.services,
        endpoints: args.endpoints,
        start: start.as_secs_f64(),
        restart: restart.as_secs_f64(),
        changes,
        memory,
        requests,
        bytes,
        churn,
    };
    print_record(&Record::Proxy(Box::new(report)))
}

/// Replaces the probed endpoint and waits until new connections reach the new one and the proxy is idle again.
fn change(probe: &mut Probe, proxy: &RunningProxy) -> Result<ProxyChange> {
    let before = proxy.cpu()?;
    let seconds = probe.flip()?.as_secs_f64();
    proxy.settle()?;
    let cpu = proxy.cpu()?.saturating_sub(before);
    log(&format!("one endpoint: {seconds:.3} s, {cpu:.2?} of CPU"));
    Ok(ProxyChange {
        seconds,
        cpu: cpu.as_secs_f64(),
    })
}
