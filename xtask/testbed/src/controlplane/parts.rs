//! Starts and stops the parts of a control plane, and waits until they are ready.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::config::ControlPlanePart;
use super::folder::Folder;
use super::process::{Process, StopMode};
use crate::tail;
use crate::vm::command::output;
use crate::vm::progress::ProgressLine;

/// Limit for the control plane to become ready.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Logs the requests of our service accounts without their bodies, for tests that compare roles with used permissions.
const AUDIT: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
  userGroups:
  - system:serviceaccounts:ipvs-topo-system
";

/// Lines of each log that are printed when something fails.
const SHOWN_LINES: usize = 15;

/// Writes the keys, starts every part, and waits until all are ready. Removes everything on failure.
pub(crate) fn start_all(folder: &Folder) -> anyhow::Result<()> {
    let state = folder.state()?;
    let names: Vec<&str> = state.config.parts.iter().map(|part| part.name()).collect();
    let step = ProgressLine::begin(format!("starting {}", names.join(", ")));
    if let Err(error) = try_start_all(folder) {
        let logs = ends_of_logs(folder, &state.config.parts);
        folder.end()?;
        bail!("{error:#}\n{logs}");
    }
    step.done(&format!("({})", folder.kubeconfig().display()));
    Ok(())
}

fn try_start_all(folder: &Folder) -> anyhow::Result<()> {
    let state = folder.state()?;
    let mut pki = Command::new(&state.program);
    pki.args(["pki", "--server", &state.config.url()])
        .args(["--address", &state.config.addresses()])
        .args(["--node", &state.config.nodes.join(",")])
        .arg("--folder")
        .arg(folder.path());
    output(&mut pki)?;
    fs::write(folder.path().join("audit.yaml"), AUDIT)?;
    for part in &state.config.parts {
        if *part == ControlPlanePart::KubeControllerManager {
            // It exits when the API server does not know its role within ten seconds, which a busy machine exceeds.
            wait_for(folder, SERVER_READY)?;
        }
        spawn(folder, *part)?;
    }
    wait_until_ready(folder)
}

/// Starts one stopped part. If no other part is stopped, waits until the control plane is ready.
pub(super) fn start(folder: &Folder, part: ControlPlanePart) -> anyhow::Result<()> {
    if folder.state()?.processes.contains_key(&part) {
        bail!("{} was not stopped", part.name());
    }
    spawn(folder, part)?;
    let state = folder.state()?;
    if state.processes.len() < state.config.parts.len() {
        return Ok(());
    }
    wait_until_ready(folder)
}

pub(super) fn stop(folder: &Folder, part: ControlPlanePart, how: StopMode) -> anyhow::Result<()> {
    let state = folder.state()?;
    let process = state.processes.get(&part);
    process
        .with_context(|| format!("{} does not run", part.name()))?
        .end(how)?;
    folder.remove_process(part)
}

/// Starts one part and stores its process.
fn spawn(folder: &Folder, part: ControlPlanePart) -> anyhow::Result<()> {
    let state = folder.state()?;
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.log(part))?;
    let mut command = state.config.command(&state.program);
    command
        .arg(part.name())
        .args(state.config.flags(part))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    if state.owner.is_none() {
        // Ctrl-C in the terminal must not stop what outlives this command.
        command.process_group(0);
    }
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", part.name()))?;
    let process = Process::new(child.id()).with_context(|| part.name().to_owned())?;
    folder.add_process(part, process)
}

/// A kubectl command that succeeds when the API server is ready.
const SERVER_READY: &[&str] = &["get", "--raw=/readyz"];

/// A kubectl command that succeeds when the controllers have done their first work.
const FIRST_WORK: &[&str] = &["get", "serviceaccount", "default", "--namespace=default"];

/// Waits for the API server and the controllers.
fn wait_until_ready(folder: &Folder) -> anyhow::Result<()> {
    wait_for(folder, SERVER_READY)?;
    wait_for(folder, FIRST_WORK)
}

/// Waits until a kubectl command succeeds.
fn wait_for(folder: &Folder, question: &[&str]) -> anyhow::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(gone) = gone(folder)? {
            bail!("{} exited", gone.name());
        }
        let mut kubectl = folder.kubectl()?;
        let answer = output(kubectl.args(question).arg("--request-timeout=2s"));
        if answer.is_ok() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return answer.map(drop).context("the control plane is not ready");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns a part that was not stopped and has exited.
fn gone(folder: &Folder) -> anyhow::Result<Option<ControlPlanePart>> {
    let state = folder.state()?;
    let mut processes = state.processes.iter();
    Ok(processes
        .find(|(_, process)| !process.is_running())
        .map(|(part, _)| *part))
}

/// Returns the end of each part's log.
fn ends_of_logs(folder: &Folder, parts: &[ControlPlanePart]) -> String {
    let mut text = String::new();
    for part in parts {
        let log = fs::read_to_string(folder.log(*part)).unwrap_or_default();
        text.extend([part.name(), ":\n", &tail(&log, SHOWN_LINES), "\n"]);
    }
    text
}
