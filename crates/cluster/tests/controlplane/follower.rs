//! Somebody who follows the real API server, with an account of the test's own.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cluster::api::{NodeSource, ResourceStatus, watch};
use cluster::event::{Completeness, Event};
use cluster::index::Index;
use cluster::object::ObjectKey;
use cluster::source::Watch;
use cluster::warning::Code;
use kube_io::Access;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::kubectl::{config, ok, server, variable};

/// How long anything may take that has to happen in the end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Somebody who follows.
pub(crate) struct Follower {
    name: String,
    runtime: Runtime,
    watch: Watch,
    /// Where its kubeconfig is, if it is nobody else's.
    _folder: Option<tempfile::TempDir>,
    pub(crate) index: Index,
    /// What was said to be gone.
    pub(crate) gone: Vec<ObjectKey>,
}

impl Follower {
    /// Somebody on the Node `name`, for whom of the others only the labels are kept that something goes by.
    pub(crate) fn new(name: &str, kubeconfig: &str) -> Self {
        Self::of(name, kubeconfig, NodeSource::Nodes { own: name.into() })
    }

    /// Somebody on the Node `own`, for whom the map stands for the others.
    pub(crate) fn mapped(own: &str, kubeconfig: &str) -> Self {
        Self::of(own, kubeconfig, NodeSource::Map { own: own.into() })
    }

    fn of(name: &str, kubeconfig: &str, nodes: NodeSource) -> Self {
        let access = Access::kubeconfig(kubeconfig.as_ref(), "tests");
        Self {
            name: name.to_owned(),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap(),
            watch: watch(&access, nodes).unwrap(),
            _folder: None,
            index: Index::new(Vec::new()),
            gone: Vec::new(),
        }
    }

    /// A user at an address, with a kubeconfig of its own.
    pub(crate) fn at(server: &str, name: &str, user: &serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, config(server, user)).unwrap();
        Self {
            _folder: Some(folder),
            ..Self::new(name, path.to_str().unwrap())
        }
    }

    pub(crate) fn administrator() -> Self {
        Self::of("administrator", &variable("KUBECONFIG"), NodeSource::Whole)
    }

    /// Takes what comes until there is an answer.
    pub(crate) fn until<T>(&mut self, what: &str, mut ask: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask(self) {
                return answer;
            }
            let state = || format!("{:?}", self.watch.sync_status().unwrap().resources());
            assert!(
                Instant::now() < deadline,
                "{}: {what} did not happen: {}",
                self.name,
                state()
            );
            let Self { runtime, watch, .. } = self;
            let moment = Duration::from_millis(100);
            let next = runtime.block_on(async { tokio::time::timeout(moment, watch.next()).await });
            if let Ok(batch) = next {
                self.take(batch.unwrap());
            }
        }
    }

    fn take(&mut self, batch: cluster::event::Batch) {
        let gone = batch.events.iter().filter_map(|event| match event {
            Event::Delete(key) => Some(key.clone()),
            _ => None,
        });
        self.gone.extend(gone);
        self.index.apply(batch);
    }

    pub(crate) fn until_whole(&mut self) {
        self.until("the first list", |me| {
            (me.index.completeness() == Some(Completeness::Whole)).then_some(())
        });
    }

    /// Waits for a Service of a namespace.
    pub(crate) fn until_service(&mut self, namespace: &str, name: &str) {
        self.until(name, |me| {
            me.services(namespace)
                .contains(&name.to_owned())
                .then_some(())
        });
    }

    /// Waits for a warning that contains all of `words`.
    pub(crate) fn until_warned(&mut self, words: &[&str]) {
        self.until(&format!("a warning with {words:?}"), |me| {
            let mut warnings = me.index.warnings().map(ToString::to_string);
            warnings.find(|text| words.iter().all(|word| text.contains(word)))
        });
    }

    /// The Services of a namespace that are known.
    pub(crate) fn services(&self, namespace: &str) -> Vec<String> {
        let services = self.index.snapshot().services();
        let of = services.filter(|service| &*service.name.namespace == namespace);
        of.map(|service| service.name.name.to_string()).collect()
    }

    /// How many bytes of a collection came.
    pub(crate) fn bytes(&self, name: &str) -> u64 {
        self.watch.sync_status().unwrap().count().bytes[name]
    }

    /// How often anything was asked about a collection.
    pub(crate) fn requests(&self, name: &str) -> u64 {
        let count = self.watch.sync_status().unwrap().count();
        let of = count
            .requests
            .iter()
            .filter(|(key, _)| key.resource == name);
        of.map(|(_, number)| number).sum()
    }

    /// How often the server answered with a code.
    pub(crate) fn answers(&self, code: u16) -> u64 {
        let count = self.watch.sync_status().unwrap().count();
        let of = count
            .requests
            .iter()
            .filter(|(key, _)| key.code == Some(code));
        of.map(|(_, number)| number).sum()
    }

    /// Waits until nothing stands in the way of any collection.
    pub(crate) fn until_untroubled(&mut self) {
        self.until("the end of the trouble", |me| {
            let mut warnings = me.index.warnings();
            (!warnings.any(|one| one.code == Code::Input)).then_some(())
        });
    }

    /// Fails if anything of a namespace was said to be gone.
    #[track_caller]
    pub(crate) fn assert_nothing_gone(&self, namespace: &str) {
        let ours = |key: &&ObjectKey| *key.name.namespace == *namespace;
        let gone = self.gone.iter().find(ours);
        assert_eq!(gone, None, "what still exists was said to be gone");
    }

    /// How a collection stands.
    pub(crate) fn state(&self, name: &str) -> ResourceStatus {
        let inputs = self.watch.sync_status().unwrap().resources();
        inputs.into_iter().find(|input| input.name == name).unwrap()
    }
}

/// Runs our own program for the control plane.
pub(crate) fn xtask(arguments: &[&str]) {
    let status = std::process::Command::new(variable("CONTROLPLANE_XTASK"))
        .arg("controlplane")
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success());
}

/// An account of its own, and the kubeconfig with its token.
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: &'static str,
    folder: tempfile::TempDir,
}

impl Account {
    /// Makes an account that may do nothing yet.
    pub(crate) fn new(namespace: &str, name: &'static str) -> Self {
        let account = Self {
            namespace: namespace.to_owned(),
            name,
            folder: tempfile::tempdir().unwrap(),
        };
        account.hire();
        account
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let path: PathBuf = self.folder.path().join("kubeconfig");
        path.to_str().unwrap().to_owned()
    }

    /// Makes the account, and writes a token of it into the kubeconfig.
    pub(crate) fn hire(&self) {
        ok(&["create", "serviceaccount", self.name, "-n", &self.namespace]);
        let config = config(&server(), &json!({"token": self.token()}));
        std::fs::write(self.kubeconfig(), config).unwrap();
    }

    /// A token of the account.
    pub(crate) fn token(&self) -> String {
        let token = ok(&["create", "token", self.name, "-n", &self.namespace]);
        token.trim().to_owned()
    }

    /// Removes the account; its tokens count no more.
    pub(crate) fn fire(&self) {
        ok(&["delete", "serviceaccount", self.name, "-n", &self.namespace]);
    }

    /// Lets the account read everything.
    pub(crate) fn allow(&self) {
        let account = format!("--serviceaccount={}:{}", self.namespace, self.name);
        ok(&[
            "create",
            "clusterrolebinding",
            &self.binding(),
            "--clusterrole=cluster-admin",
            &account,
        ]);
    }

    /// Takes that back.
    pub(crate) fn forbid(&self) {
        ok(&["delete", "clusterrolebinding", &self.binding()]);
    }

    fn binding(&self) -> String {
        format!("{}-{}", self.namespace, self.name)
    }
}

/// Makes etcd forget all of its history.
pub(crate) fn compact() {
    let status = etcd("/v3/maintenance/status", "{}");
    let revision = status.pointer("/header/revision").unwrap();
    etcd(
        "/v3/kv/compaction",
        &json!({"revision": revision, "physical": true}).to_string(),
    );
}

/// Asks etcd over its socket.
fn etcd(path: &str, body: &str) -> serde_json::Value {
    let socket = format!("{}/client.sock", variable("CONTROLPLANE_FOLDER"));
    let mut stream = UnixStream::connect(socket).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{answer}");
    serde_json::from_str(body).unwrap()
}
