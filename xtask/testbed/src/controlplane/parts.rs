//! Starting and ending the parts of a control plane, and waiting until they are ready.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::folder::Folder;
use super::process::{Ending, Process};
use super::site::Part;
use crate::vm::command::output;
use crate::vm::progress::Step;

/// How long the control plane may take to be ready.
const PATIENCE: Duration = Duration::from_secs(180);

/// What our own accounts asked for, for tests that compare their roles with what is used; not what was in it.
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

/// Lines of each log that are shown when something fails.
const SHOWN_LINES: usize = 15;

/// Writes the keys, starts every part, and returns when all are ready; on failure nothing is left.
pub(crate) fn start_all(folder: &Folder) -> anyhow::Result<()> {
    let record = folder.record()?;
    let names: Vec<&str> = record.site.parts.iter().map(|part| part.name()).collect();
    let step = Step::begin(format!("starting {}", names.join(", ")));
    if let Err(error) = try_start_all(folder) {
        let logs = ends_of_logs(folder, &record.site.parts);
        folder.end()?;
        bail!("{error:#}\n{logs}");
    }
    step.done(&format!("({})", folder.kubeconfig().display()));
    Ok(())
}

fn try_start_all(folder: &Folder) -> anyhow::Result<()> {
    let record = folder.record()?;
    let mut pki = Command::new(&record.program);
    pki.args(["pki", "--server", &record.site.url()])
        .args(["--address", &record.site.addresses()])
        .args(["--node", &record.site.nodes.join(",")])
        .arg("--folder")
        .arg(folder.path());
    output(&mut pki)?;
    fs::write(folder.path().join("audit.yaml"), AUDIT)?;
    for part in &record.site.parts {
        if *part == Part::KubeControllerManager {
            // It gives up when the API server does not know its role within ten seconds, which a busy machine exceeds.
            wait_for(folder, SERVER_READY)?;
        }
        spawn(folder, *part)?;
    }
    wait_until_ready(folder)
}

/// Starts one part that was stopped; when no other is missing, it returns when the control plane is ready.
pub(super) fn start(folder: &Folder, part: Part) -> anyhow::Result<()> {
    if folder.record()?.processes.contains_key(&part) {
        bail!("{} was not stopped", part.name());
    }
    spawn(folder, part)?;
    let record = folder.record()?;
    if record.processes.len() < record.site.parts.len() {
        return Ok(());
    }
    wait_until_ready(folder)
}

/// Ends one part.
pub(super) fn stop(folder: &Folder, part: Part, how: Ending) -> anyhow::Result<()> {
    let record = folder.record()?;
    let process = record.processes.get(&part);
    process
        .with_context(|| format!("{} does not run", part.name()))?
        .end(how)?;
    folder.forget(part)
}

/// Starts one part and writes down who it is.
fn spawn(folder: &Folder, part: Part) -> anyhow::Result<()> {
    let record = folder.record()?;
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.log(part))?;
    let mut command = record.site.command(&record.program);
    command
        .arg(part.name())
        .args(record.site.flags(part))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    if record.owner.is_none() {
        // An interrupt in the terminal is not meant for what stays behind this command.
        command.process_group(0);
    }
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", part.name()))?;
    let process = Process::new(child.id()).with_context(|| part.name().to_owned())?;
    folder.remember(part, process)
}

/// What kubectl can do when the API server is ready.
const SERVER_READY: &[&str] = &["get", "--raw=/readyz"];

/// The first work of the controllers.
const FIRST_WORK: &[&str] = &["get", "serviceaccount", "default", "--namespace=default"];

/// Waits for the API server, and for the controllers, which show by their first work.
fn wait_until_ready(folder: &Folder) -> anyhow::Result<()> {
    wait_for(folder, SERVER_READY)?;
    wait_for(folder, FIRST_WORK)
}

/// Waits until kubectl can do something.
fn wait_for(folder: &Folder, question: &[&str]) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(gone) = gone(folder)? {
            bail!("{} ended by itself", gone.name());
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

/// A part that was started and ended.
fn gone(folder: &Folder) -> anyhow::Result<Option<Part>> {
    let record = folder.record()?;
    let mut processes = record.processes.iter();
    Ok(processes
        .find(|(_, process)| !process.is_running())
        .map(|(part, _)| *part))
}

/// What each part said last.
fn ends_of_logs(folder: &Folder, parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let log = fs::read_to_string(folder.log(*part)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let end = lines.get(lines.len().saturating_sub(SHOWN_LINES)..);
        text.extend([
            part.name(),
            ":\n",
            &end.unwrap_or_default().join("\n"),
            "\n",
        ]);
    }
    text
}
