//! kubectl, namespaces for tests, and waiting.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads a variable that `cargo xtask controlplane test` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask controlplane test`"))
}

/// Whether the API server is of the oldest Kubernetes that we support.
pub(crate) fn is_oldest() -> bool {
    variable("CONTROLPLANE_VERSION").starts_with("v1.33.")
}

/// Runs kubectl with `input` on stdin; returns its stdout, or its stderr if it fails.
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

pub(crate) fn kubectl(arguments: &[&str]) -> Result<String, String> {
    kubectl_with("", arguments)
}

/// Runs kubectl; returns its output whether it fails or not.
pub(crate) fn run(arguments: &[&str]) -> Output {
    Command::new(variable("CONTROLPLANE_PROGRAM"))
        .arg("kubectl")
        .args(arguments)
        .env("KUBECONFIG", variable("KUBECONFIG"))
        .output()
        .unwrap()
}

/// Runs kubectl, which must succeed; returns its stdout.
#[track_caller]
pub(crate) fn ok(arguments: &[&str]) -> String {
    kubectl(arguments).unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
}

/// Runs kubectl, which must fail; returns its stderr.
#[track_caller]
pub(crate) fn refused(arguments: &[&str]) -> String {
    kubectl(arguments).unwrap_err()
}

pub(crate) fn repository(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path).to_str().unwrap().to_owned()
}

/// Waits until the API server serves every kind that is defined.
pub(crate) fn established() {
    let crds = ["wait", "--for=condition=Established", "crd", "--all"];
    ok(&[&crds[..], &["--timeout=180s"]].concat());
}

/// Applies the CRDs and the admission policies once; returns when the API server enforces them.
pub(crate) fn installed() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        ok(&["apply", "-k", &repository("manifests/crds")]);
        ok(&["apply", "-k", &repository("manifests/admission")]);
        established();
        // The API server enforces admission policies some time after they are written.
        let folder = folder(&[service("odd", &[("mode", "odd")])]);
        let path = folder.path().to_str().unwrap();
        eventually("the first refusal by an admission policy", || {
            kubectl(&["create", "--dry-run=server", "-f", path]).err()
        });
    });
}

/// Deletes the objects of a folder of manifests, with the definitions of our kinds.
///
/// The API server refuses to list a kind (`storage is (re)initializing`) until a client requests it
/// after the server started, the kind was defined or another definition was deleted. The finalizer
/// of the API server gets this error, too (kubernetes/kubernetes#140485). It waits twice as long
/// after each refusal, or until the definition changes (`crd_finalizer.go` of
/// `k8s.io/apiextensions-apiserver`). So a thread lists the kinds and changes their definitions.
pub(crate) fn remove_manifests(folder: &str) {
    let path = repository(folder);
    let is_deleted = AtomicBool::new(false);
    let deleted = std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_u32.. {
                if is_deleted.load(Ordering::Relaxed) {
                    break;
                }
                touch_kinds(round);
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        // The definition of a policy may be deleted before the policy.
        let deleted = kubectl(&[
            "delete",
            "-k",
            &path,
            "--ignore-not-found",
            "--timeout=300s",
        ]);
        is_deleted.store(true, Ordering::Relaxed);
        deleted
    });
    deleted.unwrap();
}

/// Lists all kinds and changes their definitions; ignores kinds that are deleted.
fn touch_kinds(round: u32) {
    const GROUP: &str = "topology.ipvs-topo.io";
    let kinds = [
        "clustertopologypolicies",
        "podlocators",
        "podmaps",
        "topologyagents",
        "topologydrains",
        "topologymaps",
        "topologypolicies",
    ];
    for kind in kinds {
        drop(kubectl(&["get", kind]));
    }
    let definitions = kinds.map(|kind| format!("crd/{kind}.{GROUP}"));
    let mut change = vec!["annotate", "--overwrite"];
    change.extend(definitions.iter().map(String::as_str));
    let annotation = format!("again={round}");
    change.push(&annotation);
    drop(kubectl(&change));
}

/// A changed definition, which is restored when this is dropped.
pub(crate) struct Changed(Value);

impl Changed {
    pub(crate) fn new(name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let text = ok(&["get", "crd", name, "-o", "json"]);
        let mut definition: Value = serde_json::from_str(&text).unwrap();
        definition.as_object_mut().unwrap().remove("status");
        let metadata = definition.pointer_mut("/metadata").unwrap();
        metadata.as_object_mut().unwrap().remove("resourceVersion");
        let before = definition.clone();
        change(definition.pointer_mut("/spec/versions").unwrap());
        kubectl_with(&definition.to_string(), &["replace", "-f", "-"]).unwrap();
        Self(before)
    }

    /// Serves the kind as `v1alpha0` only.
    pub(crate) fn to_another_version(name: &str) -> Self {
        Self::new(name, |versions| {
            let mut older = versions[0].clone();
            older["name"] = json!("v1alpha0");
            older["storage"] = json!(false);
            versions[0]["served"] = json!(false);
            versions.as_array_mut().unwrap().push(older);
        })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let text = self.0.to_string();
        drop(kubectl_with(&text, &["replace", "-f", "-"]));
    }
}

pub(crate) fn server() -> String {
    ok(&[
        "config",
        "view",
        "-o=jsonpath={.clusters[0].cluster.server}",
    ])
}

/// A kubeconfig for a user of the server at an address.
pub(crate) fn config(server: &str, user: &Value) -> String {
    let authority = format!("{}/ca.crt", variable("CONTROLPLANE_FOLDER"));
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    });
    config.to_string()
}

/// A Service with `topology.ipvs-topo.io/` annotations.
pub(crate) fn service(name: &str, annotations: &[(&str, &str)]) -> String {
    let mut text = format!("apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n");
    text.push_str("  annotations:\n    other.example.com/mode: nonsense\n");
    for (name, value) in annotations {
        text.extend([format!("    topology.ipvs-topo.io/{name}: {value:?}\n")]);
    }
    text.push_str("spec:\n  ports: [{port: 80}]\n");
    text
}

pub(crate) fn folder(texts: &[String]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (at, text) in texts.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{at:04}.yaml")), text).unwrap();
    }
    folder
}

/// Every YAML file below a folder of the repository.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(repository(folder))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Calls `ask` until it returns a value.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A namespace of one test, which is deleted when this is dropped.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{count}", std::process::id());
        kubectl(&["create", "namespace", &name]).unwrap();
        Self(name)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        kubectl(&[&["--namespace", &self.0], arguments].concat())
    }

    pub(crate) fn apply(&self, objects: &str) -> Result<String, String> {
        kubectl_with(objects, &["--namespace", &self.0, "apply", "-f", "-"])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A failed test may have stopped the API server. The control plane is removed anyway.
        drop(self.kubectl(&["delete", "namespace", &self.0, "--wait=false"]));
    }
}
