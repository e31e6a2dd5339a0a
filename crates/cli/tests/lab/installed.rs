//! `kubectl apply -k manifests/base`: agents and controllers run, and each node's kernel serves.

use std::collections::BTreeSet;

use crate::cluster::{
    NODES, Namespace, SYSTEM, agent_on, install, kubectl, kubectl_says, on_node, wait_for, xtask,
};
use crate::web;

/// Runs the agent's `status` until it contains `words`.
fn wait_until_status_says(agent: &str, words: &str) {
    wait_for(words, || {
        // `status` exits with 1 until the kernel is in the desired state.
        let status = kubectl_says(&[SYSTEM, "exec", agent, "--", "/usr/bin/ipvs-topo", "status"]);
        status.contains(words).then_some(())
    });
}

/// Connects a thousand times from a pod on `node`; returns the client's counts.
fn load(namespace: &Namespace, node: &str, address: &str) -> serde_json::Value {
    let image = format!(
        "registry.invalid/ipvs-topo/guest:{}",
        env!("CARGO_PKG_VERSION")
    );
    let here = format!(r#"{{"spec": {{"nodeName": "{node}"}}}}"#);
    let target = format!("{address}:80");
    let run = [
        "run",
        "client",
        "--restart=Never",
        "--image",
        &image,
        "--overrides",
        &here,
    ];
    let never = [
        "--image-pull-policy=Never",
        "--command",
        "--",
        "/usr/bin/guest",
    ];
    let load = [
        "load",
        "--target",
        &target,
        "--connections",
        "1000",
        "-o",
        "json",
    ];
    namespace.kubectl(&[&run[..], &never, &load].concat());
    let done = "--for=jsonpath={.status.phase}=Succeeded";
    namespace.kubectl(&["wait", done, "--timeout=180s", "pod/client"]);
    serde_json::from_str(&namespace.kubectl(&["logs", "client"])).unwrap()
}

#[test]
fn the_unchanged_manifests_split_a_service_by_its_annotation() {
    install();
    assert_eq!(nodes_of_controllers().len(), 2);
    for node in NODES {
        // Through the mount, because a container's own settings are read-only.
        let setting = on_node(node, "cat /proc/sys/net/ipv4/vs/conntrack");
        assert_eq!(setting.trim(), "1", "{node}");
    }
    let namespace = web::start();
    let weights = "topology.ipvs-topo.io/weights=node=80,zone=15,*=5";
    namespace.kubectl(&["annotate", "service", "web", weights]);
    let agent = agent_on("n2");
    wait_until_status_says(&agent, "level zone has no endpoint, its 15 % go to level *");
    let address = "-o=jsonpath={.spec.clusterIP}";
    let address = namespace.kubectl(&["get", "service", "web", address]);
    let counted = load(&namespace, "n2", &address);
    // The client's zone has no other endpoint, so its 15 % go to the two endpoints in other zones.
    for (node, wanted) in [("n1", 100), ("n2", 800), ("n3", 100)] {
        let answers = counted["answers"][node].as_i64().unwrap();
        assert!((answers - wanted).abs() <= 20, "{counted}");
    }
    assert_eq!(counted["failed"], 0, "{counted}");
    every_agent_acts_by_a_new_policy(&namespace);
}

/// No two controllers share a node.
fn nodes_of_controllers() -> BTreeSet<String> {
    let controllers = "--selector=app.kubernetes.io/name=ipvs-topo-controller";
    let nodes = "-o=jsonpath={.items[*].spec.nodeName}";
    let nodes = kubectl(&[SYSTEM, "get", "pods", controllers, nodes]);
    nodes.split(' ').map(str::to_owned).collect()
}

/// The agents report the policy, and the controller counts the agents.
fn every_agent_acts_by_a_new_policy(namespace: &Namespace) {
    namespace.apply(
        "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyPolicy\nmetadata: {name: near}\nspec: {mode: Prefer, levels: [{key: topology.kubernetes.io/zone}, {any: true}]}\n\
         ---\n\
         apiVersion: v1\nkind: Service\nmetadata: {name: plain}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n",
    );
    // The other Service has an annotation, so the policy needs this Service: agents report only
    // policies in use.
    let wait = ["wait", "--for=condition=Programmed", "--timeout=120s"];
    namespace.kubectl(&[&wait[..], &["topologypolicy/near"]].concat());
    let nodes = "-o=jsonpath={.status.programmedNodes}";
    assert_eq!(
        namespace.kubectl(&["get", "topologypolicy", "near", nodes]),
        "3/3"
    );
}

/// With traffic: an annotation changes, a zone's pod is replaced, and a zone is drained and
/// restored.
#[test]
fn alone_the_second_demo_runs_in_a_cluster_with_traffic() {
    let played = xtask(&["demo", "--kubernetes"]);
    assert!(played.contains(" passed, 0 failed"), "{played}");
}
