//! A client that follows the real API server, and accounts for it.

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

const TIMEOUT: Duration = Duration::from_secs(120);

/// A client that watches the cluster and keeps an index of it.
pub(crate) struct Follower {
    name: String,
    runtime: Runtime,
    watch: Watch,
    /// Holds the kubeconfig that [`Follower::at`] wrote.
    _folder: Option<tempfile::TempDir>,
    pub(crate) index: Index,
    /// Keys of all `Delete` events.
    pub(crate) deleted: Vec<ObjectKey>,
}

impl Follower {
    /// Follows from the Node `name`; keeps only the labels of other Nodes that a policy uses.
    pub(crate) fn new(name: &str, kubeconfig: &str) -> Self {
        Self::of(name, kubeconfig, NodeSource::Nodes { own: name.into() })
    }

    /// Follows from the Node `own`, with the map for the other Nodes.
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
            deleted: Vec::new(),
        }
    }

    /// Follows the server at an address as `user`.
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

    /// Applies batches until `ask` returns a value.
    pub(crate) fn until<T>(&mut self, what: &str, mut ask: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + TIMEOUT;
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
                self.apply(batch.unwrap());
            }
        }
    }

    fn apply(&mut self, batch: cluster::event::Batch) {
        let deleted = batch.events.iter().filter_map(|event| match event {
            Event::Delete(key) => Some(key.clone()),
            _ => None,
        });
        self.deleted.extend(deleted);
        self.index.apply(batch);
    }

    pub(crate) fn until_whole(&mut self) {
        self.until("the first list", |me| {
            (me.index.completeness() == Some(Completeness::Whole)).then_some(())
        });
    }

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

    pub(crate) fn services(&self, namespace: &str) -> Vec<String> {
        let services = self.index.snapshot().services();
        let found = services.filter(|service| &*service.name.namespace == namespace);
        found.map(|service| service.name.name.to_string()).collect()
    }

    pub(crate) fn bytes(&self, name: &str) -> u64 {
        self.watch.sync_status().unwrap().count().bytes[name]
    }

    pub(crate) fn requests(&self, name: &str) -> u64 {
        let count = self.watch.sync_status().unwrap().count();
        let matching = count
            .requests
            .iter()
            .filter(|(key, _)| key.resource == name);
        matching.map(|(_, number)| number).sum()
    }

    pub(crate) fn answers(&self, code: u16) -> u64 {
        let count = self.watch.sync_status().unwrap().count();
        let matching = count
            .requests
            .iter()
            .filter(|(key, _)| key.code == Some(code));
        matching.map(|(_, number)| number).sum()
    }

    /// Waits until no collection has a warning.
    pub(crate) fn until_no_warnings(&mut self) {
        self.until("the end of the warnings", |me| {
            let mut warnings = me.index.warnings();
            (!warnings.any(|warning| warning.code == Code::Input)).then_some(())
        });
    }

    /// Fails if an object of the namespace was deleted from the index.
    #[track_caller]
    pub(crate) fn assert_nothing_deleted(&self, namespace: &str) {
        let ours = |key: &&ObjectKey| *key.name.namespace == *namespace;
        let deleted = self.deleted.iter().find(ours);
        assert_eq!(
            deleted, None,
            "an object that still exists was deleted from the index"
        );
    }

    pub(crate) fn state(&self, name: &str) -> ResourceStatus {
        let resources = self.watch.sync_status().unwrap().resources();
        resources
            .into_iter()
            .find(|resource| resource.name == name)
            .unwrap()
    }
}

pub(crate) fn xtask(arguments: &[&str]) {
    let status = std::process::Command::new(variable("CONTROLPLANE_XTASK"))
        .arg("controlplane")
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success());
}

/// A service account, and a kubeconfig with its token.
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: &'static str,
    folder: tempfile::TempDir,
}

impl Account {
    /// Creates an account without rights.
    pub(crate) fn new(namespace: &str, name: &'static str) -> Self {
        let account = Self {
            namespace: namespace.to_owned(),
            name,
            folder: tempfile::tempdir().unwrap(),
        };
        account.create();
        account
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let path: PathBuf = self.folder.path().join("kubeconfig");
        path.to_str().unwrap().to_owned()
    }

    /// Creates the account and writes a token into the kubeconfig.
    pub(crate) fn create(&self) {
        ok(&["create", "serviceaccount", self.name, "-n", &self.namespace]);
        let config = config(&server(), &json!({"token": self.token()}));
        std::fs::write(self.kubeconfig(), config).unwrap();
    }

    pub(crate) fn token(&self) -> String {
        let token = ok(&["create", "token", self.name, "-n", &self.namespace]);
        token.trim().to_owned()
    }

    /// Deletes the account, which revokes its tokens.
    pub(crate) fn delete(&self) {
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

    /// Removes the right that [`Account::allow`] gave.
    pub(crate) fn forbid(&self) {
        ok(&["delete", "clusterrolebinding", &self.binding()]);
    }

    fn binding(&self) -> String {
        format!("{}-{}", self.namespace, self.name)
    }
}

/// Compacts the whole history of etcd.
pub(crate) fn compact() {
    let status = etcd("/v3/maintenance/status", "{}");
    let revision = status.pointer("/header/revision").unwrap();
    etcd(
        "/v3/kv/compaction",
        &json!({"revision": revision, "physical": true}).to_string(),
    );
}

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
