//! Empties, fills and reads the API server.

use std::process::Command;
use std::time::{Duration, Instant};

use cli::origin::Origin;
use kube_io::{Access, ApiError, Connection, Fault, Patch};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::kubectl::{established, kubectl, variable};

/// Every relevant collection, over all namespaces.
const COLLECTIONS: [&str; 8] = [
    "/api/v1/nodes",
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/api/v1/namespaces",
    "/apis/topology.ipvs-topo.io/v1alpha1/topologypolicies",
    "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies",
    "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains",
];

pub(crate) fn origin() -> Origin {
    Origin::Api(Access::kubeconfig(variable("KUBECONFIG").as_ref(), "test"))
}

/// Runs `cargo xtask controlplane`.
pub(crate) fn xtask(arguments: &[&str]) {
    let mut command = Command::new(variable("CONTROLPLANE_XTASK"));
    let done = command.arg("controlplane").args(arguments).output();
    let done = done.unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
}

/// The API server, without controllers that would change the objects of tests.
pub(crate) struct Server {
    api: Connection,
}

impl Server {
    pub(crate) async fn alone() -> Self {
        xtask(&["stop", "kube-controller-manager"]);
        let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
        let api = Connection::open(&access).await.unwrap();
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/crds");
        kubectl(&["apply", "-k", crds]).unwrap();
        established();
        Self { api }
    }

    /// Deletes everything that affects decisions, except the API server's own objects.
    pub(crate) async fn empty(&self) {
        self.empty_except_node("none").await;
    }

    /// Does the same, and keeps the Node `kept`, which a running kube-proxy needs.
    pub(crate) async fn empty_except_node(&self, kept: &str) {
        for namespace in self.namespaces().await {
            for collection in [
                format!("/api/v1/namespaces/{namespace}/services"),
                format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
                format!(
                    "/apis/topology.ipvs-topo.io/v1alpha1/namespaces/{namespace}/topologypolicies"
                ),
            ] {
                patient(async || self.api.delete(&collection).await).await;
            }
        }
        let others = format!("/api/v1/nodes?fieldSelector=metadata.name%21%3D{kept}");
        for collection in [
            &*others,
            "/apis/topology.ipvs-topo.io/v1alpha1/clustertopologypolicies",
            "/apis/topology.ipvs-topo.io/v1alpha1/topologydrains",
        ] {
            patient(async || self.api.delete(collection).await).await;
        }
    }

    /// All namespaces except `default`, which has the API server's own Service.
    async fn namespaces(&self) -> Vec<String> {
        let listed = self.api.list("/api/v1/namespaces").await.unwrap();
        let items = listed.pointer("/items").and_then(Value::as_array).unwrap();
        let names = items
            .iter()
            .filter_map(|item| item.pointer("/metadata/name")?.as_str());
        let own = |name: &&str| *name != "default";
        names.filter(own).map(str::to_owned).collect()
    }

    /// Creates objects in parallel. Each has the path of its collection.
    pub(crate) async fn fill(&self, objects: Vec<(String, Value)>) {
        let mut tasks = JoinSet::new();
        for (path, object) in objects {
            let api = self.api.clone();
            tasks.spawn(create(api, path, object));
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    }

    /// Changes the labels of a Node.
    pub(crate) async fn label_node(&self, name: &str, labels: &Value) {
        let path = format!("/api/v1/nodes/{name}");
        let change = json!({"metadata": {"labels": labels}});
        patient(async || self.api.patch(&path, Patch::Merge, &change).await).await;
    }

    /// Creates a namespace if it is missing.
    pub(crate) async fn namespace(&self, name: &str, labels: &Value) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let made = self.api.create("/api/v1/namespaces", &object).await;
        let fault = made.err().map(|error| error.fault);
        assert!(
            matches!(fault, None | Some(Fault::AlreadyExists)),
            "{fault:?}"
        );
    }

    /// All objects, as in `kubectl get -o json`.
    pub(crate) async fn written(&self) -> Value {
        let mut items = Vec::new();
        for collection in COLLECTIONS {
            let list = patient(async || self.api.list(collection).await).await;
            let kind = list
                .pointer("/kind")
                .and_then(Value::as_str)
                .unwrap()
                .trim_end_matches("List");
            let version = list.pointer("/apiVersion").unwrap();
            for item in list.pointer("/items").and_then(Value::as_array).unwrap() {
                let mut item = item.clone();
                let object = item.as_object_mut().unwrap();
                object.insert("kind".to_owned(), json!(kind));
                object.insert("apiVersion".to_owned(), version.clone());
                items.push(item);
            }
        }
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        xtask(&["start", "kube-controller-manager"]);
    }
}

/// Retries while the server is busy, for example with the storage of a new CRD.
async fn patient<T>(ask: impl AsyncFn() -> Result<T, ApiError>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => pause(&error, deadline).await,
        }
    }
}

/// Creates an object in its own task, with its status.
async fn create(api: Connection, path: String, object: Value) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let own = format!("{path}/{}", name.unwrap());
    let mut is_again = false;
    while let Err(error) = api.create(&path, &object).await {
        // The server may have finished a request although its answer was lost.
        if is_again && api.get(&own).await.is_ok() {
            break;
        }
        pause(&error, deadline).await;
        is_again = true;
    }
    // It drops the status of a new Service.
    let is_service = object.get("kind").is_some_and(|kind| kind == "Service");
    if let Some(status) = object.get("status").filter(|_| is_service) {
        let (path, change) = (format!("{own}/status"), json!({"status": status}));
        while let Err(error) = api.patch(&path, Patch::Merge, &change).await {
            pause(&error, deadline).await;
        }
    }
}

async fn pause(error: &ApiError, deadline: Instant) {
    assert!(
        error.fault.is_passing() && Instant::now() < deadline,
        "{error}"
    );
    tokio::time::sleep(Duration::from_millis(100)).await;
}
