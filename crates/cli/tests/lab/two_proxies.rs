//! A kube-proxy that runs on the nodes beside the agents.

use crate::cluster::{
    NODES, SYSTEM, agent_on, install, kubectl, kubectl_says, kubectl_tries, on_node, wait_for,
    wait_for_rollout,
};
use crate::migration::apply_kube_proxy;

const AGENTS: &str = "daemonset/ipvs-topo-agent";

/// What answers on the health port of n1, by way of the API server.
fn get(path: &str) -> Result<String, String> {
    let path = format!("/api/v1/nodes/http:n1:10256/proxy{path}");
    kubectl_tries("", &["get", "--raw", &path])
}

/// What `ipvs-topo status` prints on n1.
fn status(agent: &str) -> String {
    kubectl_says(&[SYSTEM, "exec", agent, "--", "/usr/bin/ipvs-topo", "status"])
}

/// The warnings in the report of n1.
fn reported() -> String {
    let warnings = "-o=jsonpath={.status.warnings}";
    kubectl(&["get", "topologyagent", "n1", warnings])
}

/// Takes the agents away, so that a kube-proxy in `mode` gets the port, and applies them again.
fn come_second(mode: &str) {
    kubectl(&[SYSTEM, "delete", AGENTS, "--timeout=120s"]);
    apply_kube_proxy(mode);
    // An agent that is still there answers both.
    wait_for("kube-proxy holds the port", || {
        let is_kube_proxy = get("/healthz").is_ok() && get("/readyz").is_err();
        is_kube_proxy.then_some(())
    });
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/base");
    kubectl(&["apply", "-k", base]);
}

/// Takes kube-proxy and its traces off every node; the scene of the way back leaves one.
fn remove_kube_proxy() {
    let kube_proxy = ["--namespace=kube-system", "delete", "daemonset/kube-proxy"];
    let options = ["--ignore-not-found", "--timeout=120s"];
    kubectl(&[&kube_proxy[..], &options].concat());
    for node in NODES {
        on_node(node, "nft flush ruleset; ipset destroy 2>/dev/null; true");
    }
}

/// The pod of the agent runs, and its probe reaches kube-proxy.
fn is_not_ready(agent: &str) {
    let phase = |path: &str| kubectl_says(&[SYSTEM, "get", agent, path]);
    assert_eq!(phase("-o=jsonpath={.status.phase}"), "Running");
    let ready = r#"-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
    assert_eq!(phase(ready), "False");
    let refused = get("/readyz").unwrap_err();
    assert!(refused.contains("NotFound"), "{refused}");
}

/// W-31: in every mode it is named in the agent's log and status and in the node's report, and the agent whose port it
/// holds does not get ready, until it is gone with its traces.
#[test]
fn alone_a_kube_proxy_beside_the_agent_is_reported_in_every_mode_and_no_longer_when_it_is_gone() {
    remove_kube_proxy();
    install();
    for mode in ["iptables", "ipvs", "nftables"] {
        come_second(mode);
        let named = format!("a kube-proxy in {mode} mode");
        let agent = wait_for(&format!("{mode} in the status"), || {
            let agent = agent_on("n1");
            status(&agent).contains(&named).then_some(agent)
        });
        wait_for(&format!("{mode} in the report"), || {
            let warnings = reported();
            let is_named =
                warnings.contains("OtherProxy") && warnings.contains(&format!("{mode} mode"));
            is_named.then_some(())
        });
        let log = kubectl(&[SYSTEM, "logs", &agent]);
        assert!(log.contains(&named), "{log}");
        is_not_ready(&agent);
        remove_kube_proxy();
        wait_for_rollout(AGENTS);
        wait_for("the end of the warning", || {
            let status = status(&agent);
            let ended = status.contains("n1") && !status.contains("a kube-proxy");
            (ended && !reported().contains("OtherProxy")).then_some(())
        });
    }
}
