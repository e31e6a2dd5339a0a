//! A kube-proxy that runs on the nodes beside the agents.

use crate::cluster::{NODES, SYSTEM, agent_on, install, kubectl, kubectl_says, on_node, wait_for};
use crate::migration::apply_kube_proxy;

/// W-31: in every mode it is named in the agent's status and in the node's report.
#[test]
fn alone_a_kube_proxy_beside_the_agent_is_reported_in_every_mode() {
    install();
    for mode in ["iptables", "ipvs", "nftables"] {
        apply_kube_proxy(mode);
        wait_for(mode, || {
            let agent = agent_on("n1");
            let ask = [SYSTEM, "exec", &agent, "--", "/usr/bin/ipvs-topo", "status"];
            let named = format!("a kube-proxy in {mode} mode");
            kubectl_says(&ask).contains(&named).then_some(())
        });
        let warnings = "-o=jsonpath={.status.warnings}";
        wait_for(&format!("{mode} in the report"), || {
            let warnings = kubectl_says(&["get", "topologyagent", "n1", warnings]);
            let is_named =
                warnings.contains("OtherProxy") && warnings.contains(&format!("{mode} mode"));
            is_named.then_some(())
        });
        kubectl(&[
            "--namespace=kube-system",
            "delete",
            "daemonset/kube-proxy",
            "--timeout=120s",
        ]);
        for node in NODES {
            on_node(node, "nft flush ruleset; ipset destroy 2>/dev/null; true");
        }
    }
}
