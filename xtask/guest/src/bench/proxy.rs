//! `guest bench proxy`: measures one node proxy on the API server of the host from outside.

mod api;
mod churn;
mod immediate_delete;
mod probe;
mod roll;
mod running;
mod traffic;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use guest_wire::report::{ProxyChange, ProxyReport};
use guest_wire::{ProxyKind, Record, ServiceType};

pub(crate) use self::immediate_delete::ReplaceArgs;
pub(crate) use self::roll::RollArgs;
pub(crate) use self::traffic::{EchoArgs, PathArgs, StallArgs};

use self::api::Api;
use self::probe::Probe;
use self::running::RunningProxy;
use self::traffic::TrafficBench;
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
    /// Their type.
    #[arg(long, value_enum, default_value_t)]
    service_type: ServiceType,
    /// Number of endpoints of each Service.
    #[arg(long, default_value_t = 10)]
    endpoints: u32,
    /// Number of times that one endpoint is replaced.
    #[arg(long, default_value_t = 5)]
    changes: u32,
    /// Measure traffic through the proxy; needs Services with node ports.
    #[arg(long, requires = "roller")]
    traffic: bool,
    /// Seconds of rolling updates of 1,000 endpoints a second.
    #[arg(long, requires = "roller", conflicts_with = "traffic")]
    churn: Option<u64>,
    /// Address of the host's `guest bench roll`.
    #[arg(long)]
    roller: Option<std::net::SocketAddr>,
}

/// Measures one proxy and prints its readings as one record.
pub(crate) fn measure(args: &ProxyArgs) -> Result<()> {
    let mut probe = Probe::prepare(Api::new(args.api), args.service_type)?;
    let mut traffic = args.traffic.then(TrafficBench::prepare).transpose()?;
    let mut report = args.start(&mut probe, traffic.as_mut())?;
    args.restart(&mut probe, &mut report)?;
    if let Some(mut traffic) = traffic {
        if args.kind == ProxyKind::IpvsTopo {
            traffic.measure_ipvs()?;
        }
        report.traffic = Some(traffic.into_report());
    }
    print_record(&Record::Proxy(Box::new(report)))
}

impl ProxyArgs {
    /// Measures the first start, and what the proxy does after it.
    fn start(&self, probe: &mut Probe, traffic: Option<&mut TrafficBench>) -> Result<ProxyReport> {
        let before = probe::bytes_on_the_wire()?;
        let (proxy, start) = self.run()?;
        let bytes = probe::bytes_on_the_wire()? - before;
        log(&format!("{}: started in {start:.2?}", self.kind.name()));
        let requests = running::requests()?;
        let memory = proxy.memory()?;
        let changes = (0..self.changes)
            .map(|_| change(probe, &proxy))
            .collect::<Result<_>>()?;
        if let (Some(bench), Some(roller)) = (traffic, self.roller) {
            bench.measure(Api::new(self.api), &proxy, roller, self.endpoints)?;
        }
        Ok(ProxyReport {
            name: self.kind.name().to_owned(),
            services: self.services,
            service_type: self.service_type,
            endpoints: self.endpoints,
            start: start.as_secs_f64(),
            restart: 0.0,
            changes,
            memory,
            requests,
            bytes,
            traffic: None,
            churn: None,
        })
    }

    /// Measures a restart, and rolling updates after it.
    fn restart(&self, probe: &mut Probe, report: &mut ProxyReport) -> Result<()> {
        let (proxy, restart) = self.run()?;
        log(&format!("restarted in {restart:.2?}"));
        report.restart = restart.as_secs_f64();
        let (Some(seconds), Some(roller)) = (self.churn, self.roller) else {
            return Ok(());
        };
        if self.changes > 0 {
            // The first change of this process runs code that the emulator has already translated for the one before.
            change(probe, &proxy)?;
        }
        let duration = Duration::from_secs(seconds);
        let mut churn = churn::run(self.endpoints, probe, &proxy, roller, duration)?;
        drop(proxy);
        churn.immediate_delete =
            immediate_delete::measure(self.services, self.endpoints, churn.changes)?;
        log(&format!(
            "churn: a bare loop that deletes at once needs {:.1} s of CPU for it",
            churn.immediate_delete
        ));
        report.churn = Some(churn);
        Ok(())
    }

    /// Starts the proxy, and waits until it is idle. Returns how long it took to program everything.
    fn run(&self) -> Result<(RunningProxy, Duration)> {
        let begin = Instant::now();
        let proxy = RunningProxy::start(self.kind, &self.binary, &self.kubeconfig)?;
        let elapsed = begin.elapsed();
        proxy.check(self.services, self.service_type, self.endpoints)?;
        proxy.settle()?;
        Ok((proxy, elapsed))
    }
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
