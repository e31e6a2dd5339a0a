//! The lab: kubectl, and programs that run beside the nodes, outside of the cluster.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take that has to happen in the end.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the runner says about the lab.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask lab test`"))
}

/// `program` in the lab's network, where the nodes' addresses are.
pub(crate) fn outside(program: &str) -> Command {
    let launch = variable("LAB_LAUNCH");
    let mut words = launch.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(program);
    command
}

/// Asks again and again until `answer` is there, which has to happen in the end.
pub(crate) fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Runs kubectl with `input` on its standard input: what it prints.
pub(crate) fn kubectl_with(input: &str, arguments: &[&str]) -> String {
    let done = run(input, arguments);
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "kubectl {arguments:?}: {complaint}");
    text(&done)
}

/// The same without input.
pub(crate) fn kubectl(arguments: &[&str]) -> String {
    kubectl_with("", arguments)
}

/// What it prints, with whatever status it ends.
pub(crate) fn kubectl_says(arguments: &[&str]) -> String {
    text(&run("", arguments))
}

fn run(input: &str, arguments: &[&str]) -> Output {
    let mut child = outside(&variable("CONTROLPLANE_PROGRAM"))
        .arg("kubectl")
        .args(arguments)
        .env("KUBECONFIG", variable("KUBECONFIG"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// What a program printed.
pub(crate) fn text(done: &Output) -> String {
    String::from_utf8(done.stdout.clone()).unwrap()
}

/// Where the manifests put everything.
pub(crate) const SYSTEM: &str = "--namespace=ipvs-topo-system";

/// Applies the manifests, and returns when everything of them runs.
pub(crate) fn install() {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/base");
    kubectl(&["apply", "-f", &format!("{base}/namespace.yaml")]);
    let server = include_str!("../../../../xtask/src/lab/api-server.yaml");
    kubectl_with(server, &["apply", "-f", "-"]);
    kubectl(&["apply", "-k", base]);
    for what in [
        "daemonset/ipvs-topo-agent",
        "deployment/ipvs-topo-controller",
    ] {
        kubectl(&[SYSTEM, "rollout", "status", what, "--timeout=600s"]);
    }
}

/// The pod of the agent on `node`.
pub(crate) fn agent_on(node: &str) -> String {
    let here = format!("--field-selector=spec.nodeName={node}");
    let agents = "--selector=app.kubernetes.io/name=ipvs-topo-agent";
    let listed = kubectl(&[SYSTEM, "get", "pods", agents, &here, "-o=name"]);
    listed.trim().to_owned()
}

/// A namespace that nobody else uses, deleted in the end.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    /// Makes one.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{count}", std::process::id());
        kubectl(&["create", "namespace", &name]);
        Self(name)
    }

    /// kubectl in it.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(&[&["--namespace", &self.0], arguments].concat())
    }

    /// Applies objects to it.
    pub(crate) fn apply(&self, objects: &str) {
        kubectl_with(objects, &["--namespace", &self.0, "apply", "-f", "-"]);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The lab ends with the run; a second panic here would hide the first.
        if !std::thread::panicking() {
            self.kubectl(&["delete", "namespace", &self.0, "--wait=false"]);
        }
    }
}
