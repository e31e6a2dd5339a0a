//! `cargo xtask bench --kubernetes`: compares the agent with kube-proxy, each alone in a guest, on one real API server.

mod guest;
mod svg;
mod table;
mod traffic;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use guest_wire::report::ProxyReport;
use guest_wire::{ProxyKind, ServiceType};
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::host_process::HostProcess;
use super::measured::measured;
pub(super) use guest::ENDPOINTS;
use testbed::controlplane::{ScopedControlPlane, Version};
use testbed::vm::Machines;
use testbed::vm::image::Addition;
use testbed::vm::progress::ProgressLine;

/// The contents of `bench-kubernetes.json`.
#[derive(Serialize, Deserialize)]
struct ComparisonFile {
    kernel: String,
    kubernetes: String,
    readings: Vec<ProxyReport>,
    /// The reason for each missing reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unmeasured: Vec<String>,
}

/// Measures, prints the table and writes the files; fails when a target is missed.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let comparison = measured(args, "bench-kubernetes.json", || measure(args))?;
    let title = format!(
        "Linux {} in QEMU without KVM, Kubernetes {}, one run of cargo xtask bench --kubernetes",
        comparison.kernel, comparison.kubernetes
    );
    let picture = svg::draw(&comparison.readings, &title)?;
    fs::write(args.out.join("bench-kubernetes.svg"), picture)?;
    anstream::println!("{title}\n\n{}", table::table(&comparison.readings));
    if let Some(table) = traffic::table(&comparison.readings) {
        anstream::println!("{table}");
    }
    let mut missed = table::missed(&comparison.readings);
    missed.extend(traffic::missed(&comparison.readings));
    missed.extend(comparison.unmeasured);
    for sentence in &missed {
        anstream::println!("missed: {sentence}");
    }
    if !table::is_compared(&comparison.readings) {
        anstream::println!(
            "nothing is compared with kube-proxy: those targets are for both at 10,000 Services"
        );
    } else if missed.is_empty() {
        anstream::println!("every target is reached");
    }
    Ok(ExitCode::from(u8::from(!missed.is_empty())))
}

fn measure(args: &Args) -> anyhow::Result<ComparisonFile> {
    ensure!(
        !args.traffic || args.service_type != ServiceType::ClusterIp,
        "--traffic goes through a node port: use --service-type NodePort or LoadBalancer"
    );
    let machines = Machines::open()?;
    let kernel = machines.kernel(args.kernel)?;
    let programs = guest::programs(&machines)?;
    let (mut readings, mut unmeasured) = (Vec::new(), Vec::new());
    for services in &args.sizes {
        let plane = ScopedControlPlane::start(Version::Newest)?;
        define(&plane)?;
        fill(
            &plane,
            *services,
            &[&format!("--type={}", args.service_type)],
        )?;
        let api = HostServer::open(plane.part("kubectl").args(["proxy", "--port=0"]))?;
        let roller = roller(&programs, &api, *services)?;
        for kind in &args.proxies {
            let run = guest::GuestRun {
                kind: *kind,
                services: *services,
                service_type: args.service_type,
                changes: args.changes.min(guest::max_changes(*kind)),
                api: api.port,
                roller: roller.port,
                traffic: args.traffic,
                churn: (*kind == ProxyKind::IpvsTopo && args.churn > 0).then_some(args.churn),
                limit: args.limit,
            };
            match run.run(&machines, &kernel, &plane, &programs) {
                Ok(proxy) => readings.push(proxy),
                // One failure must not discard the other readings, which take an hour.
                Err(error) => {
                    let sentence = format!("{} at {services} Services: {error:#}", run.names().0);
                    anstream::eprintln!("  not measured: {sentence}");
                    unmeasured.extend(sentence.lines().next().map(str::to_owned));
                }
            }
        }
        drop((api, roller));
        plane.end()?;
    }
    Ok(ComparisonFile {
        kernel: kernel.release,
        kubernetes: Version::Newest.release()?,
        readings,
        unmeasured,
    })
}

/// Opens the program that replaces endpoints through `api`.
pub(super) fn roller(
    programs: &[Addition],
    api: &HostServer,
    services: u32,
) -> anyhow::Result<HostServer> {
    HostServer::open(&mut guest::roller(programs, api.port, services)?)
}

/// Installs our CRDs, as in a real cluster, and waits until the API server serves them.
pub(super) fn define(plane: &ScopedControlPlane) -> anyhow::Result<()> {
    let kubectl = |words: &[&str]| {
        let mut kubectl = plane.part("kubectl");
        kubectl.current_dir(testbed::paths::root()).args(words);
        testbed::vm::command::output(&mut kubectl).map(drop)
    };
    kubectl(&["apply", "-k", "manifests/crds"])?;
    kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
    for kind in [
        "topologypolicies",
        "clustertopologypolicies",
        "topologydrains",
    ] {
        let path = format!("/apis/topology.ipvs-topo.io/v1alpha1/{kind}");
        kubectl(&["get", "--raw", &path])?;
    }
    Ok(())
}

/// Creates Services; `options` say what they are.
pub(super) fn fill(
    plane: &ScopedControlPlane,
    services: u32,
    options: &[&str],
) -> anyhow::Result<()> {
    let words = options.join(" ");
    let step = ProgressLine::begin(format!(
        "creating {services} Services ({words}) with {ENDPOINTS} endpoints"
    ));
    let mut fill = plane.part("fill");
    fill.arg("--kubeconfig").arg(plane.kubeconfig());
    fill.arg(format!("--services={services}"))
        .arg(format!("--endpoints={ENDPOINTS}"))
        .args(options);
    testbed::vm::command::output(&mut fill)?;
    step.done("");
    Ok(())
}

/// A program on the host that guests connect to. It prints its address first.
pub(super) struct HostServer {
    pub(super) port: u16,
    /// Killed when dropped.
    _process: HostProcess,
    /// Kept open, because the program may print more.
    _output: BufReader<ChildStdout>,
}

impl HostServer {
    pub(super) fn open(program: &mut Command) -> anyhow::Result<Self> {
        let name = program.get_program().display().to_string();
        program.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = HostProcess::start(program)?;
        let output = process.take_output();
        let mut output = BufReader::new(output.with_context(|| format!("{name} has no output"))?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let port = line.trim().rsplit_once(':').map(|(_, port)| port.parse());
        let port = port
            .and_then(Result::ok)
            .with_context(|| format!("{name} said: {line}"))?;
        Ok(Self {
            port,
            _process: process,
            _output: output,
        })
    }
}
