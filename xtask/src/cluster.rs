//! The cluster of the lab: kubectl, and the manifests of this project.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, ensure};

use testbed::lab::{API_SERVER, RunningLab};
use testbed::paths;
use testbed::vm::progress::ProgressLine;

/// The option for the namespace of agents and controllers.
const SYSTEM: &str = "--namespace=ipvs-topo-system";

/// Runs kubectl with `input` on its standard input, and returns its output.
pub(crate) fn kubectl(lab: &RunningLab, input: &str, words: &[&str]) -> anyhow::Result<String> {
    let mut child = lab
        .kubectl()?
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let done = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "kubectl {}: {said}", words.join(" "));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The manifests of this project.
pub(crate) const BASE: &str = "manifests/base";

/// Applies `manifests`, which are [`BASE`] or based on it.
pub(crate) fn install(lab: &RunningLab, manifests: &str) -> anyhow::Result<()> {
    let step = ProgressLine::begin(format!("kubectl apply -k {manifests}"));
    let namespace = paths::root().join(BASE).join("namespace.yaml");
    kubectl(lab, "", &["apply", "-f", &namespace.to_string_lossy()])?;
    kubectl(lab, API_SERVER, &["apply", "-f", "-"])?;
    // `kubectl apply` refuses a policy of the manifests until its definition is established.
    let crds = paths::root().join("manifests/crds");
    kubectl(lab, "", &["apply", "-k", &crds.to_string_lossy()])?;
    let established = ["wait", "--for=condition=Established", "crd", "--all"];
    kubectl(lab, "", &established)?;
    let manifests = paths::root().join(manifests);
    kubectl(lab, "", &["apply", "-k", &manifests.to_string_lossy()])?;
    step.done("");
    Ok(())
}

/// Waits until agents and controllers are ready.
pub(crate) fn wait_for_agents(lab: &RunningLab) -> anyhow::Result<()> {
    wait_for(lab, SYSTEM, "daemonset/ipvs-topo-agent")?;
    wait_for(lab, SYSTEM, "deployment/ipvs-topo-controller")
}

/// Prints that it waits for `what`, and waits.
pub(crate) fn wait_for(lab: &RunningLab, namespace: &str, what: &str) -> anyhow::Result<()> {
    let step = ProgressLine::begin(format!("waiting for {what}"));
    roll_out(lab, namespace, what)?;
    step.done("");
    Ok(())
}

/// Waits until every Pod of `what` has the newest version and is ready.
pub(crate) fn roll_out(lab: &RunningLab, namespace: &str, what: &str) -> anyhow::Result<String> {
    let words = ["rollout", "status", namespace, what, "--timeout=600s"];
    kubectl(lab, "", &words)
}
