//! `guest bench rival`: one node proxy on the API server of the host, driven and looked at from outside.

mod api;
mod churn;
mod eager;
mod probe;
mod proxy;
mod roll;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use guest_wire::report::{Rival, RivalChange};
use guest_wire::{ProxyKind, Record};

pub(crate) use self::eager::ReplaceArgs;
pub(crate) use self::roll::RollArgs;

use self::api::Api;
use self::probe::Probe;
use self::proxy::Proxy;
use crate::output::{log, print_record};

/// `guest bench rival`.
#[derive(clap::Args)]
pub(crate) struct RivalArgs {
    /// Which proxy.
    #[arg(value_enum)]
    kind: ProxyKind,
    /// Its binary.
    #[arg(long)]
    binary: PathBuf,
    /// How it reaches the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Where the host's `kubectl proxy` answers.
    #[arg(long)]
    api: std::net::SocketAddr,
    /// How many Services the cluster has, beside the one that is probed.
    #[arg(long)]
    services: u32,
    /// How many endpoints each has.
    #[arg(long, default_value_t = 10)]
    endpoints: u32,
    /// How many times one endpoint is replaced.
    #[arg(long, default_value_t = 5)]
    changes: u32,
    /// Seconds of rolling updates of 1,000 endpoints a second.
    #[arg(long, requires = "roller")]
    churn: Option<u64>,
    /// Where the host's `guest bench roll` answers.
    #[arg(long)]
    roller: Option<std::net::SocketAddr>,
}

/// Measures one proxy and tells its readings as one record.
pub(crate) fn rival(args: &RivalArgs) -> Result<()> {
    let mut probe = Probe::prepare(Api::new(args.api))?;
    let traffic = probe::bytes_on_the_wire()?;
    let begin = Instant::now();
    let proxy = Proxy::start(args.kind, &args.binary, &args.kubeconfig)?;
    let start = begin.elapsed();
    proxy.check(args.services, args.endpoints)?;
    proxy.settle()?;
    let bytes = probe::bytes_on_the_wire()? - traffic;
    log(&format!("{}: started in {start:.2?}", args.kind.name()));
    let requests = proxy::requests()?;
    let memory = proxy.memory()?;
    let changes = (0..args.changes)
        .map(|_| change(&mut probe, &proxy))
        .collect::<Result<_>>()?;
    proxy.kill()?;
    let begin = Instant::now();
    let proxy = Proxy::start(args.kind, &args.binary, &args.kubeconfig)?;
    let restart = begin.elapsed();
    log(&format!("restarted in {restart:.2?}"));
    proxy.check(args.services, args.endpoints)?;
    if args.changes > 0 {
        // All is new to this process, but not to the emulator, which has translated the code for the one before.
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
    proxy.kill()?;
    if let Some(churn) = &mut churn {
        churn.eager = eager::measure(args.services, args.endpoints, churn.changes)?;
        log(&format!(
            "churn: a bare loop that deletes at once needs {:.1} s of CPU for it",
            churn.eager
        ));
    }
    let rival = Rival {
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
    print_record(&Record::Rival(Box::new(rival)))
}

/// Replaces the probed endpoint, waits until new connections reach the new one, and until the proxy rests again.
fn change(probe: &mut Probe, proxy: &Proxy) -> Result<RivalChange> {
    let before = proxy.cpu()?;
    let seconds = probe.flip()?.as_secs_f64();
    proxy.settle()?;
    let cpu = proxy.cpu()?.saturating_sub(before);
    log(&format!("one endpoint: {seconds:.3} s, {cpu:.2?} of CPU"));
    Ok(RivalChange {
        seconds,
        cpu: cpu.as_secs_f64(),
    })
}
