//! Nodes as kubelet reports them.

use kube_io::{ApiError, Connection, Patch};
use serde_json::{Value, json};

use crate::{Outcome, each};

/// Images of each Node, of the 50 that a kubelet reports at most.
const IMAGES: usize = 15;

/// Makes Nodes with the numbers below `count`.
pub(crate) async fn create(api: &Connection, count: usize) -> Outcome<()> {
    each(api, count, |api, number| async move {
        create_one(&api, number).await
    })
    .await
}

pub(crate) fn name(number: usize) -> String {
    format!("node-{number:05}.example.internal")
}

/// Makes a Node as large as those of a small cloud machine.
async fn create_one(api: &Connection, number: usize) -> Result<(), ApiError> {
    let (name, zone) = (name(number), ["a", "b", "c"].get(number % 3));
    let images: Vec<Value> = (0..IMAGES).map(image).collect();
    let resources = json!({
        "cpu": "3920m", "memory": "15076868Ki", "pods": "110", "ephemeral-storage": "95491281146",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "r",
                "topology.kubernetes.io/zone": zone, "example.com/rack": format!("rack-{}", number / 20),
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": format!("10.{}.{}.0/24", number / 256, number % 256)},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": format!("172.16.{}.{}", number / 250, number % 250)},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources, "capacity": resources, "conditions": conditions(0), "images": images,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64", "bootID": "6f0f2fcd-9bcf-4f0f-8e3c-2a4ae0c6e7a1",
                "containerRuntimeVersion": "containerd://2.1.4", "kernelVersion": "6.12.48+deb13-cloud-amd64",
                "kubeProxyVersion": "", "kubeletVersion": "v1.36.3", "machineID": "ec2b1c5e4f8f4f5cb2e0bb0cb2f7c9c4",
                "operatingSystem": "linux", "osImage": "Debian GNU/Linux 13 (trixie)",
                "systemUUID": "ec2b1c5e-4f8f-4f5c-b2e0-bb0cb2f7c9c4",
            },
        },
    });
    api.create("/api/v1/nodes", &node).await.map(drop)
}

fn image(number: usize) -> Value {
    let digest = format!("{number:02x}").repeat(32);
    let name = format!("registry.example.com/team-{}/service-{number}", number % 4);
    json!({"names": [format!("{name}@sha256:{digest}"), format!("{name}:v1.{number}.0")], "sizeBytes": 51_234_567 + number})
}

/// The conditions that a kubelet reports, as of a heartbeat.
fn conditions(round: usize) -> Value {
    let (hour, minute) = (round / 12, 5 * (round % 12));
    let time = format!("2026-11-22T{hour:02}:{minute:02}:00Z");
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time, "lastTransitionTime": "2026-11-20T08:00:00Z",
        })
    };
    json!([
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure"
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available"
        ),
        condition(
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status"
        ),
    ])
}

/// What a kubelet writes every five minutes if nothing has happened.
pub(crate) async fn beat(api: &Connection, number: usize, round: usize) -> Result<(), ApiError> {
    let path = format!("/api/v1/nodes/{}/status", name(number));
    let status = json!({"status": {"conditions": conditions(round)}});
    api.patch(&path, Patch::Merge, &status).await.map(drop)
}
