//! Measures one changed endpoint, an idle agent, and restarts, all on a full kernel.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use benches::{Shape, service_file, write_service};
use guest_wire::report::{ChangeCost, Idle, ResidentMemory, Restart};
use ipvs_netlink::{Client, Protocol, ServiceId};
use serde::{Deserialize, Serialize};

use super::agent::{self, Agent};
use super::bare_socket::BareSocket;
use super::{messages, namespace, process};

/// How long the idle agent is observed while no check is due.
const QUIET: Duration = Duration::from_secs(10);
/// The period of the observed checks, in seconds.
const CHECK_SECONDS: u32 = 5;
/// The number of observed checks.
const CHECKS: u32 = 3;
const POLL_INTERVAL: Duration = Duration::from_micros(500);
const CHANGE_LIMIT: Duration = Duration::from_secs(10);
/// Time for the agent to finish the work that follows a change.
const AFTERMATH: Duration = Duration::from_millis(150);

/// `guest bench steady`: measures on a full kernel.
#[derive(clap::Args)]
pub(crate) struct SteadyArgs {
    /// The agent's binary.
    #[arg(long)]
    agent: PathBuf,
    /// The cluster, a folder with one file for each Service.
    #[arg(long)]
    folder: PathBuf,
    /// A folder on the same file system that the agent does not watch.
    #[arg(long)]
    aside: PathBuf,
    /// The number of Services in it.
    #[arg(long)]
    services: u32,
    /// Number of endpoints that leave and come back.
    #[arg(long)]
    changes: u32,
    /// Number of restarts of the agent.
    #[arg(long)]
    repeat: u32,
}

impl SteadyArgs {
    pub(crate) fn services(&self) -> u32 {
        self.services
    }
}

/// The readings of `guest bench steady`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Steady {
    pub(crate) change: ChangeCost,
    pub(crate) restart: Restart,
    pub(crate) idle: Idle,
    pub(crate) memory: ResidentMemory,
}

/// Fills the table of this namespace and measures on it.
pub(crate) fn steady(args: &SteadyArgs, shape: &Shape) -> Result<Steady> {
    namespace::prepare()?;
    let agent = start(args, agent::NO_CHECK)?;
    namespace::settle()?;
    let memory = process::memory(agent.pid())?;
    let (quiet_seconds, quiet_wakeups) = quiet(&agent)?;
    let change = change(args, shape, &agent)?;
    drop(agent);
    let restart = restart(args)?;
    let agent = start(args, CHECK_SECONDS)?;
    let idle = Idle {
        quiet_seconds,
        quiet_wakeups,
        ..checks(&agent)?
    };
    drop(agent);
    Ok(Steady {
        change,
        restart,
        idle,
        memory,
    })
}

fn start(args: &SteadyArgs, check_seconds: u32) -> Result<Agent> {
    Agent::start(&agent::StartOptions {
        binary: &args.agent,
        cluster: &args.folder,
        check_seconds,
        log: args.aside.join("agent.log"),
    })
}

/// Observes an idle agent; returns for how long, and how often it woke.
fn quiet(agent: &Agent) -> Result<(f64, u64)> {
    let before = process::read(agent.pid())?;
    let begin = Instant::now();
    sleep(QUIET);
    let seen = process::read(agent.pid())?.since(before);
    Ok((begin.elapsed().as_secs_f64(), seen.sleeps))
}

/// Observes some periodic checks.
fn checks(agent: &Agent) -> Result<Idle> {
    let length = Duration::from_secs(u64::from(CHECK_SECONDS * CHECKS));
    let before = process::read(agent.pid())?;
    sleep(length);
    let seen = process::read(agent.pid())?.since(before);
    let cpu = seen.first() + seen.others();
    Ok(Idle {
        checked_seconds: length.as_secs_f64(),
        checks: u64::from(CHECKS),
        check_cpu_ms: cpu.as_secs_f64() * 1e3 / f64::from(CHECKS),
        ..Idle::default()
    })
}

/// Removes and adds one endpoint at a time, in Services spread over the cluster.
fn change(args: &SteadyArgs, shape: &Shape, agent: &Agent) -> Result<ChangeCost> {
    let mut watcher = KernelWatcher::open()?;
    let mut change = ChangeCost::default();
    let before = agent.metrics()?;
    for round in 0..args.changes {
        let index = round.wrapping_mul(7_919) % args.services;
        for present in [Present::No, Present::Yes] {
            let reading = process::read(agent.pid())?;
            let wall = watcher.replace(args, shape, index, present)?;
            sleep(AFTERMATH);
            let seen = process::read(agent.pid())?.since(reading);
            change.cpu_ms.push(seen.first().as_secs_f64() * 1e3);
            let others = seen.others().as_secs_f64() * 1e3;
            change.reading_cpu_ms.push(others);
            change.wall_ms.push(wall.as_secs_f64() * 1e3);
        }
    }
    let after = agent.metrics()?;
    let rise = |name| after.sum(name) - before.sum(name);
    change.latency_ms = 1e3 * rise("ipvs_topo_change_latency_seconds_sum")
        / rise("ipvs_topo_change_latency_seconds_count");
    change.cpu_ms.sort_by(f64::total_cmp);
    change.reading_cpu_ms.sort_by(f64::total_cmp);
    change.wall_ms.sort_by(f64::total_cmp);
    Ok(change)
}

/// Whether a Service has its last endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Present {
    Yes,
    No,
}

/// Changes a file and waits for the kernel.
struct KernelWatcher {
    client: Client,
}

impl KernelWatcher {
    fn open() -> Result<Self> {
        Ok(Self {
            client: Client::open()?,
        })
    }

    /// Replaces the file of a Service and returns the time until the kernel has added or removed its last endpoint.
    fn replace(
        &mut self,
        args: &SteadyArgs,
        shape: &Shape,
        index: u32,
        present: Present,
    ) -> Result<Duration> {
        let mut service = shape.service(index);
        let Some(last) = service.endpoints.last().cloned() else {
            bail!("a Service without endpoints cannot lose one");
        };
        if present == Present::No {
            service.endpoints.pop();
        }
        let mut text = Vec::new();
        write_service(shape, &service, &mut text)?;
        // Written outside the watched folder, so that the agent sees only one rename.
        let fresh = args.aside.join("fresh.yaml");
        fs::write(&fresh, text)?;
        let id = ServiceId::address(
            Protocol::TCP,
            service.cluster_ip.into(),
            benches::shape::SERVICE_PORT,
        );
        let begin = Instant::now();
        fs::rename(&fresh, service_file(&args.folder, &service))?;
        while self.serves(&id, last.address.into())? != present {
            if begin.elapsed() > CHANGE_LIMIT {
                bail!(
                    "the kernel did not follow the change of {} in {CHANGE_LIMIT:?}",
                    service.name
                );
            }
            sleep(POLL_INTERVAL);
        }
        Ok(begin.elapsed())
    }

    /// Returns whether this real server accepts new connections of the virtual server.
    fn serves(&mut self, id: &ServiceId, address: std::net::IpAddr) -> Result<Present> {
        let entries = self.client.destinations(id)?;
        let serves = entries
            .iter()
            .any(|entry| entry.destination.address == address && entry.destination.weight > 0);
        Ok(if serves { Present::Yes } else { Present::No })
    }
}

/// Restarts the agent on a correct kernel, alternating with a bare dump.
fn restart(args: &SteadyArgs) -> Result<Restart> {
    let requests = messages::dump_requests()?;
    let mut restart = Restart::default();
    for _ in 0..args.repeat {
        namespace::settle()?;
        let (dump, _) = BareSocket::open()?.dump(&requests)?;
        restart.dump.push(dump.as_secs_f64());
        let agent = start(args, agent::NO_CHECK)?;
        restart.agent.push(agent.start_report()?);
        drop(agent);
    }
    Ok(restart)
}
