//! A kube-proxy that still runs on the nodes while the agents are installed.

use crate::cluster::{SYSTEM, agent_on, install, kubectl, kubectl_says, on_node, wait_for};
use crate::migration::apply_kube_proxy;

const KUBE_PROXY: &[&str] = &["--namespace=kube-system", "delete", "daemonset/kube-proxy"];

const AGENTS: &str = "--selector=app.kubernetes.io/name=ipvs-topo-agent";

/// Lets agents run on nodes with that label only; on all nodes without one.
fn agents_on(label: Option<&str>) {
    let selector = serde_json::json!({"ipvs-topo.io/agent": label});
    let patch = serde_json::json!({"spec": {"template": {"spec": {"nodeSelector": selector}}}});
    let patch = patch.to_string();
    kubectl(&[
        SYSTEM,
        "patch",
        "daemonset/ipvs-topo-agent",
        "--type=merge",
        "--patch",
        &patch,
    ]);
}

/// W-31: in every mode it is named in the agent's status, and its answers on the agent's port make no pod ready.
#[test]
fn alone_a_kube_proxy_beside_the_agent_is_reported_in_every_mode() {
    install();
    for mode in ["iptables", "ipvs", "nftables"] {
        // The proxy that starts first has the ports.
        agents_on(Some("off"));
        kubectl(&[
            SYSTEM,
            "wait",
            "pod",
            AGENTS,
            "--for=delete",
            "--timeout=120s",
        ]);
        apply_kube_proxy(mode);
        kubectl(&[
            "--namespace=kube-system",
            "rollout",
            "status",
            "daemonset/kube-proxy",
            "--timeout=300s",
        ]);
        agents_on(None);
        wait_for(mode, || {
            let agent = agent_on("n1");
            let status =
                kubectl_says(&[SYSTEM, "exec", &agent, "--", "/usr/bin/ipvs-topo", "status"]);
            status
                .contains(&format!("a kube-proxy in {mode} mode runs on this node"))
                .then_some(())
        });
        let ready = r#"-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
        assert_eq!(
            kubectl(&[SYSTEM, "get", &agent_on("n1"), ready]),
            "False",
            "{mode}"
        );
        kubectl(&[KUBE_PROXY, &["--ignore-not-found", "--timeout=120s"]].concat());
        for node in ["n1", "n2", "n3"] {
            on_node(node, "nft flush ruleset; ipset destroy 2>/dev/null; true");
        }
    }
    install();
}
