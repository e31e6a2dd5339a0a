//! The lab: kubectl, and programs beside the nodes, outside of the cluster.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::document;

/// The longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(300);

/// An environment variable that `cargo xtask lab test` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask lab test`"))
}

/// `program` in the lab's network, which has the nodes' addresses.
pub(crate) fn outside(program: &str) -> Command {
    let launch = variable("LAB_LAUNCH");
    let mut words = launch.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).arg(program);
    command
}

/// The program that `kubectl` runs.
pub(crate) fn program() -> PathBuf {
    variable("CONTROLPLANE_PROGRAM").into()
}

/// Repeats `answer` until it returns a value; panics after [`PATIENCE`].
pub(crate) fn wait_for<T>(what: &str, answer: impl FnMut() -> Option<T>) -> T {
    answer_within(PATIENCE, answer).unwrap_or_else(|| panic!("{what}"))
}

/// Repeats `answer` until it returns a value, for at most `patience`.
pub(crate) fn answer_within<T>(
    patience: Duration,
    mut answer: impl FnMut() -> Option<T>,
) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        let answered = answer();
        if answered.is_some() || Instant::now() >= deadline {
            return answered;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Prints the duration to standard error; cargo shows the test's own output only if it fails.
pub(crate) fn print_duration(name: &str, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "    scene: {name}: {seconds:.0} s").unwrap();
}

/// Runs kubectl with `input` on standard input; returns its output or its errors.
pub(crate) fn kubectl_tries(input: &str, arguments: &[&str]) -> Result<String, String> {
    let done = run(input, arguments);
    if done.status.success() {
        Ok(text(&done))
    } else {
        Err(String::from_utf8(done.stderr).unwrap())
    }
}

/// As [`kubectl_tries`], but kubectl must succeed.
pub(crate) fn kubectl_with(input: &str, arguments: &[&str]) -> String {
    let tried = kubectl_tries(input, arguments);
    tried.unwrap_or_else(|complaint| panic!("kubectl {arguments:?}: {complaint}"))
}

pub(crate) fn kubectl(arguments: &[&str]) -> String {
    kubectl_with("", arguments)
}

/// The output, whatever the exit code.
pub(crate) fn kubectl_says(arguments: &[&str]) -> String {
    text(&run("", arguments))
}

/// Runs an xtask command such as `lab run n1 LINE`, which must succeed; returns its output.
pub(crate) fn xtask(arguments: &[&str]) -> String {
    let mut command = Command::new(variable("LAB_XTASK"));
    let done = command.args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    let text = text(&done);
    assert!(done.status.success(), "{arguments:?}: {text}{said}");
    text
}

/// Runs a shell command on a node, which must succeed; returns its output.
pub(crate) fn on_node(node: &str, line: &str) -> String {
    xtask(&["lab", "run", node, line])
}

fn run(input: &str, arguments: &[&str]) -> Output {
    let mut child = outside(program().to_str().unwrap())
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

pub(crate) fn text(done: &Output) -> String {
    String::from_utf8(done.stdout.clone()).unwrap()
}

/// The nodes, each with another kernel.
pub(crate) const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// The address of `node` in the lab's network.
pub(crate) fn address_of(node: &str) -> String {
    let address = "-o=jsonpath={.status.addresses[?(@.type==\"InternalIP\")].address}";
    kubectl(&["get", "node", node, address])
}

/// Waits until every node's kernel has real servers with a weight above zero for an address.
pub(crate) fn wait_until_served(address: &str) {
    for node in NODES {
        wait_for("a kernel does not serve", || {
            let mut weights = weights_of(node, address).into_values();
            weights.any(|weight| weight > 0).then_some(())
        });
    }
}

/// The weights of a TCP virtual server's real servers in the kernel of `node`, by address.
pub(crate) fn weights_of(node: &str, address: &str) -> BTreeMap<String, u32> {
    real_servers(node, &format!("-t {address}"))
}

/// The weights of the real servers of any virtual server, as `ipvsadm` names it: `-u 10.96.0.10:53`.
pub(crate) fn real_servers(node: &str, server: &str) -> BTreeMap<String, u32> {
    let held = on_node(node, &format!("ipvsadm -Ln {server} 2>&1 || true"));
    let real = |line: &str| {
        let mut words = line.trim().strip_prefix("-> ")?.split_whitespace();
        Some((words.next()?.to_owned(), words.nth(1)?.parse().ok()?))
    };
    held.lines().filter_map(real).collect()
}

/// The address of the API server, without a Service.
const API_SERVER: &str = "192.0.2.1";

pub(crate) const SYSTEM: &str = "--namespace=ipvs-topo-system";

/// Applies the manifests as documented, also over existing ones, and waits until everything runs.
pub(crate) fn install() {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let turn = ONE_AT_A_TIME.lock().unwrap();
    let server = [SYSTEM, "get", "configmap", "ipvs-topo-api-server"];
    if kubectl_tries("", &server).is_ok() {
        let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/base");
        kubectl(&["apply", "-k", base]);
    } else {
        let blocks = document::blocks("Installing in a cluster");
        let block = blocks.first().unwrap().replace("10.0.0.1", API_SERVER);
        document::Desk::new().run(&block);
    }
    drop(turn);
    wait_for_rollout("daemonset/ipvs-topo-agent");
    wait_for_rollout("deployment/ipvs-topo-controller");
}

/// Waits until every pod of `what` has the newest version and is ready.
pub(crate) fn wait_for_rollout(what: &str) {
    kubectl(&[SYSTEM, "rollout", "status", what, "--timeout=600s"]);
}

pub(crate) fn agent_on(node: &str) -> String {
    let here = format!("--field-selector=spec.nodeName={node}");
    let agents = "--selector=app.kubernetes.io/name=ipvs-topo-agent";
    let listed = kubectl(&[SYSTEM, "get", "pods", agents, &here, "-o=name"]);
    listed.trim().to_owned()
}

/// A namespace that exists as long as the lab.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    /// Creates a namespace for one test.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{count}", std::process::id());
        kubectl(&["create", "namespace", &name]);
        Self(name)
    }

    /// The namespace of objects that all tests share; created if missing.
    pub(crate) fn shared() -> Self {
        let name = "shared";
        let object = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
        kubectl_with(&object, &["apply", "-f", "-"]);
        Self(name.to_owned())
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(&[&["--namespace", &self.0], arguments].concat())
    }

    pub(crate) fn apply(&self, objects: &str) {
        kubectl_with(objects, &["--namespace", &self.0, "apply", "-f", "-"]);
    }
}
