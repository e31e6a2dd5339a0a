//! Random EndpointSlices of a Service, as of a Service without selector: the endpoints are any.

use serde_json::{Map, Value, json};

use super::{Dice, NAMESPACE, ZONES, node_address};
use crate::kubectl::is_oldest;

/// The slices of the Service number `index`, each with the path of its collection.
pub(super) fn slices(
    dice: &mut Dice,
    index: usize,
    service: &Value,
    nodes: usize,
) -> Vec<(String, Value)> {
    let list = |path: &str| service.pointer(path).and_then(Value::as_array);
    let (Some(families), Some(ports)) = (list("/spec/ipFamilies"), list("/spec/ports")) else {
        return Vec::new();
    };
    let mut slices = Vec::new();
    for family in families.iter().filter_map(Value::as_str) {
        let mut repeated = None;
        for part in 0..=dice.roll(2) {
            let mut endpoints = endpoints(dice, index, family, part, nodes);
            // The same pod in two slices, as while the controller moves it.
            endpoints.extend(repeated.take().filter(|_| dice.is(30)));
            repeated = endpoints.first().cloned();
            let name = format!("s{index}-{}-{part}", family.to_lowercase());
            slices.push(slice(dice, index, &name, family, ports, &endpoints));
        }
    }
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices");
    slices
        .into_iter()
        .map(|slice| (path.clone(), slice))
        .collect()
}

fn slice(
    dice: &mut Dice,
    index: usize,
    name: &str,
    family: &str,
    ports: &[Value],
    endpoints: &[Value],
) -> Value {
    let mut listed = Vec::new();
    for port in ports {
        let field = |name: &str| port.get(name).cloned().unwrap();
        // A named port may have another number in each pod.
        let number = match field("targetPort") {
            Value::String(_) => dice.of(&[8080, 9090]).into(),
            number => number,
        };
        if !dice.is(4) {
            listed.push(
                json!({"name": field("name"), "protocol": field("protocol"), "port": number}),
            );
        }
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": format!("s{index}")},
        },
        "addressType": family, "ports": listed, "endpoints": endpoints,
    })
}

fn endpoints(dice: &mut Dice, index: usize, family: &str, part: usize, nodes: usize) -> Vec<Value> {
    let hinted = dice.is(40);
    let mut endpoints: Vec<Value> = (0..dice.roll(6))
        .map(|at| {
            let address = match family {
                "IPv6" => format!("fd00:10:244::{}:{}:{}", index + 1, part + 1, at + 1),
                _ => format!("10.244.{}.{}", index * 3 + part, at + 1),
            };
            let node = dice.roll(nodes);
            endpoint(dice, &address, node, hinted, nodes)
        })
        .collect();
    if part == 0 && dice.is(20) {
        // A pod in the host's network.
        let node = dice.roll(nodes);
        let address = node_address(node, family);
        endpoints.push(endpoint(dice, &address, node, hinted, nodes));
    }
    endpoints
}

fn endpoint(dice: &mut Dice, address: &str, node: usize, hinted: bool, nodes: usize) -> Value {
    let mut endpoint = json!({"addresses": [address], "conditions": conditions(dice)});
    let fields = endpoint.as_object_mut().unwrap();
    if !dice.is(5) {
        fields.insert("nodeName".to_owned(), json!(format!("n{node}")));
    }
    if !dice.is(10) {
        fields.insert("zone".to_owned(), json!(dice.of(&ZONES)));
    }
    // Hints count if every ready endpoint has some.
    if dice.is(if hinted { 97 } else { 10 }) {
        let mut hints = json!({"forZones": [{"name": dice.of(&ZONES)}]});
        // Kubernetes 1.33 drops them.
        if !is_oldest() && dice.is(40) {
            let node = format!("n{}", dice.roll(nodes));
            let hints = hints.as_object_mut().unwrap();
            hints.insert("forNodes".to_owned(), json!([{"name": node}]));
        }
        fields.insert("hints".to_owned(), hints);
    }
    endpoint
}

/// Ready, not ready, or terminating and perhaps serving; some conditions are absent.
fn conditions(dice: &mut Dice) -> Value {
    let ready = dice.is(75);
    let mut conditions = Map::new();
    if !ready || dice.is(80) {
        conditions.insert("ready".to_owned(), json!(ready));
    }
    if dice.is(85) {
        conditions.insert("serving".to_owned(), json!(ready || dice.is(60)));
    }
    if dice.is(85) {
        conditions.insert("terminating".to_owned(), json!(!ready && dice.is(60)));
    }
    Value::Object(conditions)
}
