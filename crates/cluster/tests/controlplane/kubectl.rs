//! kubectl, a namespace of a test's own, and waiting.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take that has to happen in the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the runner says about the control plane.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask controlplane test`"))
}

/// Runs kubectl with `input` on its standard input: what it prints, or what it complains about.
pub(crate) fn kubectl_with(input: &str, arguments: &[&str]) -> Result<String, String> {
    let mut child = Command::new(variable("CONTROLPLANE_PROGRAM"))
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
    let done = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if done.status.success() {
        Ok(text(done.stdout))
    } else {
        Err(text(done.stderr))
    }
}

/// The same without input.
pub(crate) fn kubectl(arguments: &[&str]) -> Result<String, String> {
    kubectl_with("", arguments)
}

/// Asks again until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A namespace that nobody else uses, deleted in the end.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    /// Makes one.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{count}", std::process::id());
        kubectl(&["create", "namespace", &name]).unwrap();
        Self(name)
    }

    /// kubectl in it.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        kubectl(&[&["--namespace", &self.0], arguments].concat())
    }

    /// Applies objects to it.
    pub(crate) fn apply(&self, objects: &str) -> Result<String, String> {
        kubectl_with(objects, &["--namespace", &self.0, "apply", "-f", "-"])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A test that fails may have lost its API server; the control plane ends with the run anyway.
        drop(self.kubectl(&["delete", "namespace", &self.0, "--wait=false"]));
    }
}
