//! `cargo xtask bench --dns`: compares the DNS server with `CoreDNS`, for the same objects of one real API server.
//!
//! Both run on this machine, and are asked in turns. While one is asked, the other has nothing to do.

mod endpoint_change;
mod headless;
mod load;
mod message;
mod name_server;
mod query;
mod readings;
mod rolling_update;
mod table;

use std::process::ExitCode;

use anyhow::Context as _;

use super::args::Args;
use super::kubernetes::{self, HostServer};
use super::measured::measured;
use endpoint_change::EndpointChanges;
use name_server::RunningNameServer;
use query::QueryKind;
use readings::{DnsComparison, NameServerReadings};
use rolling_update::RollingUpdate;
use testbed::controlplane::{ScopedControlPlane, Version};
use testbed::coredns;
use testbed::vm::build;
use testbed::vm::progress::ProgressLine;

/// Measures, prints the table and writes `bench-dns.json`; fails when the target is missed.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let comparison = measured(args, "bench-dns.json", || measure(args))?;
    anstream::println!("{}", table::table(&comparison));
    let missed = table::missed(&comparison);
    for sentence in &missed {
        anstream::println!("missed: {sentence}");
    }
    if missed.is_empty() {
        anstream::println!("the target is reached: at most 50 us of CPU for a query");
    }
    Ok(ExitCode::from(u8::from(!missed.is_empty())))
}

fn measure(args: &Args) -> anyhow::Result<DnsComparison> {
    let programs = build::programs(build::Profile::Release)?;
    let ours = build::program(&programs, "usr/bin/ipvs-topo").context("no ipvs-topo was built")?;
    let their_program = coredns::build()?;
    let mut readings = Vec::new();
    for services in &args.sizes {
        let plane = ScopedControlPlane::start(Version::Newest)?;
        kubernetes::define(&plane)?;
        kubernetes::fill(&plane, services / 2, &["--type=ClusterIP"])?;
        headless::create(&plane, services / 2)?;
        let api = HostServer::open(plane.part("kubectl").args(["proxy", "--port=0"]))?;
        let roller = kubernetes::roller(&programs, &api, services / 2)?;
        let changes = EndpointChanges::through(api.port);
        let servers = [
            RunningNameServer::ipvs_topo(ours, &plane.kubeconfig())?,
            RunningNameServer::coredns(&their_program, &plane.kubeconfig())?,
        ];
        readings.extend(compare(args, *services, &servers, changes, &roller)?);
        drop((servers, roller, api));
        plane.end()?;
    }
    Ok(DnsComparison {
        coredns: coredns::release()?,
        kubernetes: Version::Newest.release()?,
        endpoints: kubernetes::ENDPOINTS,
        readings,
    })
}

/// Asks the servers in turns, then changes endpoints, which both see.
fn compare(
    args: &Args,
    services: u32,
    servers: &[RunningNameServer],
    mut changes: EndpointChanges,
    roller: &HostServer,
) -> anyhow::Result<Vec<NameServerReadings>> {
    let mut readings: Vec<_> = servers
        .iter()
        .map(|server| NameServerReadings::of(server, services))
        .collect();
    let step = ProgressLine::begin(format!("asking about {services} Services"));
    for _ in 0..args.repeat {
        for query in QueryKind::ALL {
            for (server, readings) in servers.iter().zip(&mut readings) {
                readings
                    .loads
                    .push(load::measure(server, query, services / 2)?);
            }
        }
    }
    step.done("");
    let step = ProgressLine::begin(format!("changing an endpoint {} times", args.changes));
    for _ in 0..args.changes {
        let seconds = changes.change(servers)?;
        for (readings, seconds) in readings.iter_mut().zip(seconds) {
            readings.changes.push(seconds);
        }
    }
    step.done("");
    let step = ProgressLine::begin("changing it during a rolling update of other endpoints");
    let rolling = RollingUpdate::begin(roller.port)?;
    while rolling.is_running() {
        let seconds = changes.change(servers)?;
        for (readings, seconds) in readings.iter_mut().zip(seconds) {
            readings.changes_rolling.push(seconds);
        }
    }
    let replaced = rolling.end()?;
    step.done("");
    for (server, readings) in servers.iter().zip(&mut readings) {
        readings.replaced = replaced;
        readings.resident_kib = server.resident_kib()?;
    }
    Ok(readings)
}
