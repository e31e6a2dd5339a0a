//! Runs the tests in the lab, and reports each as it ends.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use testbed::e2e::{DNS_IMAGE, Suite};
use testbed::lab::{NODES, RunningLab};

use super::junit::{TestOutcome, Verdict};
use super::proxy::Proxy;
use super::selection;
use crate::{cluster, tools};

/// Marks the lines of the program that this command reads.
const PROGRESS: &str = "conformance: ";

/// The tests of a run, and where it writes.
pub(super) struct Run<'a> {
    pub(super) suite: &'a Suite,
    pub(super) proxy: Proxy,
    pub(super) tests: &'a [String],
    /// The `JUnit` report.
    pub(super) report: PathBuf,
}

/// A test that has ended, as the program prints it.
#[derive(Deserialize)]
struct FinishedTest {
    name: String,
    state: String,
    seconds: f64,
    message: String,
}

impl Run<'_> {
    /// Starts a lab, runs the tests in it, calls `each` after each test, and stops the lab.
    pub(super) fn go(&self, each: &mut dyn FnMut(&str, &TestOutcome)) -> anyhow::Result<()> {
        let folder = self.report.parent().context("a report without a folder")?;
        let images = folder.join("images");
        let lab = RunningLab::start_with(&self.suite.write_images(&images)?)?;
        // The nodes have them.
        fs::remove_dir_all(images)?;
        let result = self.in_lab(&lab, each);
        lab.end()?;
        result
    }

    fn in_lab(
        &self,
        lab: &RunningLab,
        each: &mut dyn FnMut(&str, &TestOutcome),
    ) -> anyhow::Result<()> {
        self.proxy.start(lab)?;
        start_dns(lab)?;
        let mut balancer = start_load_balancer(&self.report.with_extension("balancer.log"))?;
        let result = self.tests(lab, each);
        // It exits with the lab, too.
        drop(balancer.kill());
        balancer.wait()?;
        let kept = self.keep_log(lab);
        result.and(kept)
    }

    /// Writes the log of the proxy, which goes with the lab, beside the report.
    fn keep_log(&self, lab: &RunningLab) -> anyhow::Result<()> {
        let [namespace, pods] = self.proxy.pods();
        let words = ["logs", namespace, pods, "--tail=-1", "--prefix"];
        let log = cluster::kubectl(lab, "", &words)?;
        Ok(fs::write(self.report.with_extension("proxy.log"), log)?)
    }

    fn tests(
        &self,
        lab: &RunningLab,
        each: &mut dyn FnMut(&str, &TestOutcome),
    ) -> anyhow::Result<()> {
        let (reader, writer) = std::io::pipe()?;
        let mut program = self.program(lab)?;
        program.stdin(Stdio::null());
        program.stdout(writer.try_clone()?).stderr(writer);
        let mut child = program.spawn().context("cannot start e2e.test")?;
        // It owns writers of the pipe: the reader sees the end only after they are dropped.
        drop(program);
        let file = self.report.with_extension("log");
        let mut log =
            File::create(&file).with_context(|| format!("cannot write {}", file.display()))?;
        let mut count = 0;
        for line in BufReader::new(reader).split(b'\n') {
            let mut line = line?;
            if let Some((name, outcome)) = ended(&line) {
                each(&name, &outcome);
                count += 1;
            }
            line.push(b'\n');
            log.write_all(&line)?;
        }
        // Its status only repeats the results.
        let status = child.wait()?;
        let log = file.display();
        ensure!(count > 0, "e2e.test ran no test ({status}): see {log}");
        Ok(())
    }

    /// Returns the command for the tests, beside the nodes.
    fn program(&self, lab: &RunningLab) -> anyhow::Result<Command> {
        let folder = self.report.parent().context("a report without a folder")?;
        // Kubernetes' program decides by its name which part it is.
        let kubectl = folder.join("kubectl");
        if kubectl.symlink_metadata().is_ok() {
            fs::remove_file(&kubectl)?;
        }
        symlink(lab.kubernetes()?, &kubectl)?;
        let mut program = lab.outside(&self.suite.program)?;
        program
            .arg(option("kubeconfig", &lab.kubeconfig()))
            .arg(option("kubectl-path", &kubectl))
            .arg(option("e2e-output-dir", folder))
            .arg(option("junit", &self.report))
            .arg(format!("--num-nodes={}", NODES.len()))
            .args(["--provider=skeleton", "--disable-log-dump"])
            // The order is random, and a seed makes it the same in each run.
            .args(["--ginkgo.v", "--ginkgo.no-color", "--ginkgo.seed=1"])
            // The limit of the whole run; Ginkgo's own is an hour.
            .arg("--ginkgo.timeout=48h")
            .arg(format!("--ginkgo.focus={}", selection::exactly(self.tests)))
            .current_dir(folder);
        Ok(program)
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Parses a line about a test that has ended.
fn ended(line: &[u8]) -> Option<(String, TestOutcome)> {
    let json = line.strip_prefix(PROGRESS.as_bytes())?;
    let ended: FinishedTest = serde_json::from_slice(json).ok()?;
    let outcome = TestOutcome {
        verdict: Verdict::of(&ended.state),
        seconds: ended.seconds,
        reason: ended.message.trim().to_owned(),
    };
    Some((ended.name, outcome))
}

fn start_dns(lab: &RunningLab) -> anyhow::Result<()> {
    let objects = include_str!("coredns.yaml").replace("DNS_IMAGE", DNS_IMAGE);
    cluster::kubectl(lab, &objects, &["apply", "-f", "-"])?;
    cluster::wait_for(lab, "--namespace=kube-system", "deployment/coredns")
}

/// Starts the program that gives Services of type `LoadBalancer` their addresses.
fn start_load_balancer(log: &Path) -> anyhow::Result<Child> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut balancer = Command::new(tools::own_program());
    balancer
        .args(["lab", "load-balancer"])
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    balancer.spawn().context("cannot start the load balancer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_program_is_the_outcome_of_a_test_and_other_lines_are_not() {
        let line = br#"conformance: {"name":"[sig-network] a","state":"panicked","seconds":1.5,"message":"no\n"}"#;
        let (name, outcome) = ended(line).unwrap();
        assert_eq!(name, "[sig-network] a");
        let expected = TestOutcome {
            verdict: Verdict::Failed,
            seconds: 1.5,
            reason: "no".to_owned(),
        };
        assert_eq!(outcome, expected);
        assert_eq!(ended(b"I1125 conformance: {}"), None);
        assert_eq!(ended(b"conformance: soon"), None);
    }
}
