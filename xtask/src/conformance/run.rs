//! Runs the tests in the lab, and reports each as it ends.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::Context as _;

use testbed::e2e::{DNS_IMAGE, Suite};
use testbed::lab::{NODES, RunningLab};

use super::junit::Reports;
use super::process::{EndedTest, TestProcess};
use super::proxy::Proxy;
use super::selection;
use crate::{cluster, tools};

/// The tests of a run, and where it writes.
pub(super) struct Run<'a> {
    pub(super) suite: &'a Suite,
    pub(super) proxy: Proxy,
    pub(super) tests: &'a [String],
    pub(super) reports: &'a Reports,
    /// The number of tests that run at the same time, unless they run alone.
    pub(super) procs: usize,
}

impl Run<'_> {
    /// Starts a lab, runs the tests in it, calls `each` after each test, and stops the lab.
    pub(super) fn go(&self, each: &mut dyn FnMut(&EndedTest)) -> anyhow::Result<()> {
        let images = self.reports.folder().join("images");
        let lab = RunningLab::start_with(&self.suite.write_images(&images)?)?;
        // The nodes have them.
        fs::remove_dir_all(images)?;
        let result = self.in_lab(&lab, each);
        lab.end()?;
        result
    }

    fn in_lab(&self, lab: &RunningLab, each: &mut dyn FnMut(&EndedTest)) -> anyhow::Result<()> {
        masquerade_pods(lab)?;
        self.proxy.start(lab)?;
        start_dns(lab)?;
        self.proxy.replace_dns(lab)?;
        let report = self.reports.next(self.proxy, 0)?;
        let mut balancer = start_load_balancer(&report.with_extension("balancer.log"))?;
        let result = self.run_tests(lab, each);
        // It exits with the lab, too.
        drop(balancer.kill());
        balancer.wait()?;
        let kept = self.keep_log(lab, &report.with_extension("proxy.log"));
        result.and(kept)
    }

    /// Writes the log of the proxy, which goes with the lab.
    fn keep_log(&self, lab: &RunningLab, file: &Path) -> anyhow::Result<()> {
        let [namespace, pods] = self.proxy.pods();
        let words = ["logs", namespace, pods, "--tail=-1", "--prefix"];
        let log = cluster::kubectl(lab, "", &words)?;
        Ok(fs::write(file, log)?)
    }

    fn run_tests(&self, lab: &RunningLab, each: &mut dyn FnMut(&EndedTest)) -> anyhow::Result<()> {
        self.link_kubectl(lab)?;
        let (parallel, alone) = selection::shares(self.tests, self.procs);
        let together = self.processes(lab, &parallel)?;
        run_together(together, each)?;
        run_together(self.processes(lab, &[alone])?, each)
    }

    /// Links to kubectl: Kubernetes' program decides by its name which part it is.
    fn link_kubectl(&self, lab: &RunningLab) -> anyhow::Result<()> {
        let kubectl = self.kubectl();
        if kubectl.symlink_metadata().is_ok() {
            fs::remove_file(&kubectl)?;
        }
        Ok(symlink(lab.kubernetes()?, &kubectl)?)
    }

    fn kubectl(&self) -> PathBuf {
        self.reports.folder().join("kubectl")
    }

    /// Returns a process for each share that has tests.
    fn processes(
        &self,
        lab: &RunningLab,
        shares: &[Vec<String>],
    ) -> anyhow::Result<Vec<TestProcess>> {
        let shares = shares.iter().filter(|share| !share.is_empty());
        let processes = shares.enumerate().map(|(at, share)| {
            let report = self.reports.next(self.proxy, at)?;
            Ok(TestProcess {
                log: report.with_extension("log"),
                command: self.command(lab, share, &report)?,
            })
        });
        processes.collect()
    }

    /// Returns the command for `tests`, beside the nodes.
    fn command(
        &self,
        lab: &RunningLab,
        tests: &[String],
        report: &Path,
    ) -> anyhow::Result<Command> {
        let folder = self.reports.folder();
        let mut program = lab.outside(&self.suite.program)?;
        program
            .arg(option("kubeconfig", &lab.kubeconfig()))
            .arg(option("kubectl-path", &self.kubectl()))
            .arg(option("e2e-output-dir", folder))
            .arg(option("junit", report))
            .arg(format!("--num-nodes={}", NODES.len()))
            .args(["--provider=skeleton", "--disable-log-dump"])
            // The order is random, and a seed makes it the same in each run.
            .args(["--ginkgo.v", "--ginkgo.no-color", "--ginkgo.seed=1"])
            // The limit of the whole run; Ginkgo's own is an hour.
            .arg("--ginkgo.timeout=48h")
            .arg(format!("--ginkgo.focus={}", selection::exactly(tests)))
            .current_dir(folder);
        Ok(program)
    }
}

/// Runs the processes at the same time, and calls `each` after each test.
fn run_together(
    processes: Vec<TestProcess>,
    each: &mut dyn FnMut(&EndedTest),
) -> anyhow::Result<()> {
    let (sender, receiver) = mpsc::channel();
    let start = |process: TestProcess| {
        let sender = sender.clone();
        thread::spawn(move || process.run(&sender))
    };
    let threads: Vec<_> = processes.into_iter().map(start).collect();
    drop(sender);
    for ended in receiver {
        each(&ended);
    }
    let results = threads.into_iter().map(|thread| match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    });
    // Every thread ends before the first error returns.
    results.collect::<Vec<_>>().into_iter().collect()
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Gives packets from Pods to other addresses than Pods' their node's address, as network plugins usually do. So a Pod
/// is an outside client of other nodes, which one test expects.
fn masquerade_pods(lab: &RunningLab) -> anyhow::Result<()> {
    let commands = "add table ip lab; \
         add chain ip lab leaving { type nat hook postrouting priority srcnat; }; \
         add rule ip lab leaving oifname eth0 ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade";
    for node in NODES {
        lab.output(node, &format!("nft '{commands}'"))?;
    }
    Ok(())
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
