//! `cargo xtask bench --kubernetes`: ours beside kube-proxy, each alone in a guest, on one real API server.

mod guest;
mod svg;
mod table;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use anyhow::Context as _;
use guest_wire::ProxyKind;
use guest_wire::report::Rival;
use serde::{Deserialize, Serialize};

use super::args::Args;
use guest::ENDPOINTS;
use testbed::controlplane::{Own, Version};
use testbed::vm::Machines;
use testbed::vm::progress::Step;

/// What `bench-kubernetes.json` holds.
#[derive(Serialize, Deserialize)]
struct Written {
    kernel: String,
    kubernetes: String,
    readings: Vec<Rival>,
    /// Why a reading is missing, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unmeasured: Vec<String>,
}

/// Measures, prints the table, writes the file; fails when a target was missed.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let written = match &args.from {
        Some(from) => {
            serde_json::from_slice(&fs::read(from).with_context(|| from.display().to_string())?)
                .with_context(|| from.display().to_string())?
        }
        None => measure(args)?,
    };
    let mut json = serde_json::to_string_pretty(&written)?;
    json.push('\n');
    fs::create_dir_all(&args.out)?;
    fs::write(args.out.join("bench-kubernetes.json"), json)?;
    let title = format!(
        "Linux {} in QEMU without KVM, Kubernetes {}, one run of cargo xtask bench --kubernetes",
        written.kernel, written.kubernetes
    );
    let picture = svg::draw(&written.readings, &title)?;
    fs::write(args.out.join("bench-kubernetes.svg"), picture)?;
    anstream::println!("{title}\n\n{}", table::table(&written.readings));
    let mut missed = table::missed(&written.readings);
    missed.extend(written.unmeasured);
    for sentence in &missed {
        anstream::println!("missed: {sentence}");
    }
    if !table::is_compared(&written.readings) {
        anstream::println!(
            "nothing is compared with kube-proxy: those targets are for both at 10,000 Services"
        );
    } else if missed.is_empty() {
        anstream::println!("every target is reached");
    }
    Ok(ExitCode::from(u8::from(!missed.is_empty())))
}

fn measure(args: &Args) -> anyhow::Result<Written> {
    let lab = Machines::open()?;
    let kernel = lab.kernel(args.kernel)?;
    let programs = guest::programs(&lab)?;
    let (mut readings, mut unmeasured) = (Vec::new(), Vec::new());
    for services in &args.sizes {
        let plane = Own::start(Version::Newest)?;
        define(&plane)?;
        fill(&plane, *services)?;
        let api = Door::open(plane.part("kubectl").args(["proxy", "--port=0"]))?;
        let roller = Door::open(&mut guest::roller(&programs, api.port, *services)?)?;
        for kind in &args.rivals {
            let task = guest::Task {
                kind: *kind,
                services: *services,
                changes: args.changes.min(guest::most_changes(*kind)),
                api: api.port,
                roller: (*kind == ProxyKind::IpvsTopo && args.churn > 0).then_some(roller.port),
                churn: args.churn,
                limit: args.limit,
            };
            match task.run(&lab, &kernel, &plane, &programs) {
                Ok(rival) => readings.push(rival),
                // The others' readings, an hour's work, are not thrown away for one that failed.
                Err(error) => {
                    let sentence = format!("{} at {services} Services: {error:#}", task.names().0);
                    anstream::eprintln!("  not measured: {sentence}");
                    unmeasured.extend(sentence.lines().next().map(str::to_owned));
                }
            }
        }
        drop((api, roller));
        plane.end()?;
    }
    Ok(Written {
        kernel: kernel.release,
        kubernetes: Version::Newest.release()?,
        readings,
        unmeasured,
    })
}

/// As where it is installed: with the definitions of our kinds, which a server asks for patience until it has them ready.
fn define(plane: &Own) -> anyhow::Result<()> {
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

fn fill(plane: &Own, services: u32) -> anyhow::Result<()> {
    let step = Step::begin(format!(
        "creating {services} Services of {ENDPOINTS} endpoints"
    ));
    let mut fill = plane.part("fill");
    fill.arg("--kubeconfig").arg(plane.kubeconfig());
    fill.arg(format!("--services={services}"))
        .arg(format!("--endpoints={ENDPOINTS}"));
    testbed::vm::command::output(&mut fill)?;
    step.done("");
    Ok(())
}

/// A program on this machine that guests reach. It begins by telling its address.
struct Door {
    child: Child,
    port: u16,
    /// Kept open: it may say more.
    output: BufReader<ChildStdout>,
}

impl Door {
    fn open(program: &mut Command) -> anyhow::Result<Self> {
        let name = program.get_program().display().to_string();
        let mut child = program
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let output = child.stdout.take();
        let output = output.with_context(|| format!("{name} has no output"))?;
        // From here on it is ended whatever it says.
        let mut door = Self {
            child,
            port: 0,
            output: BufReader::new(output),
        };
        let mut line = String::new();
        door.output.read_line(&mut line)?;
        let port = line.trim().rsplit_once(':').map(|(_, port)| port.parse());
        door.port = port
            .and_then(Result::ok)
            .with_context(|| format!("{name} said: {line}"))?;
        Ok(door)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Gone already is as good as ended here.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
