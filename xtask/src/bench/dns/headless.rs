//! Creates headless Services, with `kubectl`.

use std::fs;

use serde_json::{Value, json};

use super::message::CHANGING;
use crate::bench::kubernetes::ENDPOINTS;
use testbed::controlplane::ScopedControlPlane;
use testbed::paths;
use testbed::vm::command;
use testbed::vm::progress::ProgressLine;

/// The namespace of all objects.
const NAMESPACE: &str = "bench";

/// Creates `count` headless Services with endpoints, and one whose only endpoint changes.
pub(super) fn create(plane: &ScopedControlPlane, count: u32) -> anyhow::Result<()> {
    let step = ProgressLine::begin(format!(
        "creating {count} headless Services with {ENDPOINTS} endpoints"
    ));
    let mut items = service(CHANGING, &["10.0.0.1".to_owned()]).to_vec();
    for number in 0..count {
        let addresses = (0..ENDPOINTS).map(|nth| address(number * ENDPOINTS + nth));
        let addresses: Vec<String> = addresses.collect();
        items.extend(service(&format!("h-{number:05}"), &addresses));
    }
    let file = paths::cache().join(format!("bench-dns-{}.json", std::process::id()));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(&file, list.to_string())?;
    let mut kubectl = plane.part("kubectl");
    kubectl.args(["create", "--validate=false", "--filename"]);
    let created = command::output(kubectl.arg(&file));
    fs::remove_file(file)?;
    created?;
    step.done("");
    Ok(())
}

/// A headless Service and the slice with its endpoints.
fn service(name: &str, addresses: &[String]) -> [Value; 2] {
    let endpoints = addresses
        .iter()
        .map(|address| json!({"addresses": [address]}));
    [
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": name, "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": endpoints.collect::<Vec<_>>(),
        }),
    ]
}

/// The nth address of 10.64.0.0/10.
fn address(nth: u32) -> String {
    let [_, high, middle, low] = nth.to_be_bytes();
    format!("10.{}.{middle}.{low}", 64 + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_its_own_address() {
        assert_eq!(address(0), "10.64.0.0");
        assert_eq!(address(99_999), "10.65.134.159");
    }
}
