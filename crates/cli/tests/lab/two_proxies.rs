//! kube-proxy and the agent on the same nodes.

use crate::cluster::{
    NODES, SYSTEM, agent_on, install, kubectl, kubectl_says, kubectl_tries, on_node, wait_for,
    wait_for_rollout,
};
use crate::migration::apply_kube_proxy;

const AGENTS: &str = "daemonset/ipvs-topo-agent";

/// Returns whether kube-proxy answers on n1's health port, which it has in common with the agent. It knows no `/readyz`.
fn kube_proxy_answers() -> bool {
    let path = "/api/v1/nodes/http:n1:10256/proxy/readyz";
    let refused = kubectl_tries("", &["get", "--raw", path]).err();
    refused.is_some_and(|error| error.contains("NotFound"))
}

/// The output of `ipvs-topo status` on n1.
fn status(agent: &str) -> String {
    kubectl_says(&[SYSTEM, "exec", agent, "--", "/usr/bin/ipvs-topo", "status"])
}

/// The warnings in n1's report.
fn reported() -> String {
    let warnings = "-o=jsonpath={.status.warnings}";
    kubectl(&["get", "topologyagent", "n1", warnings])
}

/// Removes the agents so that kube-proxy in `mode` gets the port, then applies them again.
fn come_second(mode: &str) {
    kubectl(&[SYSTEM, "delete", AGENTS, "--timeout=120s"]);
    apply_kube_proxy(mode);
    wait_for("kube-proxy holds the port", || {
        kube_proxy_answers().then_some(())
    });
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/base");
    kubectl(&["apply", "-k", base]);
}

/// Removes kube-proxy and its traces from every node. The migration back leaves a kube-proxy.
fn remove_kube_proxy() {
    let kube_proxy = ["--namespace=kube-system", "delete", "daemonset/kube-proxy"];
    let options = ["--ignore-not-found", "--timeout=120s"];
    kubectl(&[&kube_proxy[..], &options].concat());
    for node in NODES {
        on_node(node, "nft flush ruleset; ipset destroy 2>/dev/null; true");
    }
}

/// The agent's pod runs, but is not ready, because its probe reaches kube-proxy.
fn is_not_ready(agent: &str) {
    let phase = |path: &str| kubectl_says(&[SYSTEM, "get", agent, path]);
    assert_eq!(phase("-o=jsonpath={.status.phase}"), "Running");
    let ready = r#"-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
    assert_eq!(phase(ready), "False");
    assert!(kube_proxy_answers());
}

/// W-31: in every mode the agent's log and status and the node's report name kube-proxy. The agent
/// is not ready while kube-proxy holds its port. All of that ends when kube-proxy and its traces
/// are gone.
#[test]
fn alone_a_kube_proxy_beside_the_agent_is_reported_in_every_mode_until_it_is_gone() {
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
