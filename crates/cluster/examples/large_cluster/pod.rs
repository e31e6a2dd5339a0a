//! Pods as the scheduler and kubelet write them.

use std::net::Ipv4Addr;

use kube_io::{ApiError, Connection, Patch};
use serde_json::{Value, json};

use crate::{Outcome, each, node};

const COLLECTION: &str = "/api/v1/namespaces/default/pods";

/// Makes Nodes, and running Pods with the numbers below `pods`.
pub(crate) async fn create(api: &Connection, nodes: usize, pods: usize) -> Outcome<()> {
    node::create(api, nodes).await?;
    each(api, pods, |api, number| async move {
        api.create(COLLECTION, &manifest(number, nodes)).await?;
        set_status(&api, number, &running(number)).await
    })
    .await
}

pub(crate) fn name(number: usize) -> String {
    format!("web-7d4b9c6f5-{number:07}")
}

/// Creates a Pod and sets its status in three writes, until it is ready.
pub(crate) async fn start(api: &Connection, number: usize, nodes: usize) -> Result<(), ApiError> {
    api.create(COLLECTION, &manifest(number, nodes)).await?;
    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
    let creating = status("Pending", "False", &waiting, None);
    set_status(api, number, &creating).await?;
    set_status(api, number, &running(number)).await
}

/// Deletes a Pod in three writes: the request, the end of its container, and the removal.
pub(crate) async fn stop(api: &Connection, number: usize) -> Result<(), ApiError> {
    let path = path(number);
    api.delete(&path).await?;
    let terminated = json!({"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": "2026-11-20T08:00:03Z", "finishedAt": "2026-11-22T10:00:00Z",
    }});
    let ended = status("Running", "False", &terminated, Some(address(number)));
    set_status(api, number, &ended).await?;
    api.delete(&format!("{path}?gracePeriodSeconds=0"))
        .await
        .map(drop)
}

fn path(number: usize) -> String {
    format!("{COLLECTION}/{}", name(number))
}

async fn set_status(api: &Connection, number: usize, status: &Value) -> Result<(), ApiError> {
    let path = format!("{}/status", path(number));
    let body = json!({ "status": status });
    api.patch(&path, Patch::Merge, &body).await.map(drop)
}

fn manifest(number: usize, nodes: usize) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 10});
    let environment: Vec<Value> = (0..8)
        .map(|number| json!({"name": format!("SETTING_{number}"), "value": format!("value-{number}.example.internal")}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name(number), "namespace": "default",
            "labels": {
                "app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-production",
                "app.kubernetes.io/version": "1.42.0", "pod-template-hash": "7d4b9c6f5",
            },
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
        },
        "spec": {
            "nodeName": node::name(number % nodes),
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "web", "image": "registry.example.com/team/web:1.42.0",
                "args": ["--listen=:8080", "--log-format=json"],
                "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
                "env": environment,
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "livenessProbe": probe("/livez"), "readinessProbe": probe("/readyz"),
            }],
        },
    })
}

fn running(number: usize) -> Value {
    let state = json!({"running": {"startedAt": "2026-11-20T08:00:03Z"}});
    status("Running", "True", &state, Some(address(number)))
}

/// An address of 10.0.0.0/8 that no other Pod has.
fn address(number: usize) -> Ipv4Addr {
    let offset = u32::try_from(number % 0xFF_FFFF).unwrap_or_default();
    Ipv4Addr::from_bits(0x0A00_0001 + offset)
}

fn status(phase: &str, ready: &str, state: &Value, address: Option<Ipv4Addr>) -> Value {
    let conditions: Vec<Value> = [
        ("PodReadyToStartContainers", "True"),
        ("Initialized", "True"),
        ("Ready", ready),
        ("ContainersReady", ready),
        ("PodScheduled", "True"),
    ]
    .map(|(kind, status)| {
        json!({
            "type": kind, "status": status, "observedGeneration": 1,
            "lastTransitionTime": "2026-11-20T08:00:00Z",
        })
    })
    .to_vec();
    json!({
        "phase": phase, "conditions": conditions, "startTime": "2026-11-20T08:00:00Z", "qosClass": "Burstable",
        "podIP": address, "podIPs": address.map(|address| json!([{ "ip": address }])),
        "hostIP": "172.16.0.1", "hostIPs": [{"ip": "172.16.0.1"}],
        "containerStatuses": [{
            "name": "web", "image": "registry.example.com/team/web:1.42.0",
            "imageID": format!("registry.example.com/team/web@sha256:{}", "5e".repeat(32)),
            "containerID": format!("containerd://{}", "a7".repeat(32)),
            "ready": ready == "True", "started": ready == "True", "restartCount": 0, "state": state,
        }],
    })
}
