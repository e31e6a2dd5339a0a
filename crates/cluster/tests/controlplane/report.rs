//! An agent writes the `TopologyAgent` of its own Node, with the token of its Pod, and no other.

use crate::kubectl::{Namespace, folder, installed, ok, refused, run};

/// The rights that an agent needs to write reports, as in `manifests/base`, and `get` for kubectl,
/// which reads before it patches.
fn role(namespace: &str) -> String {
    format!(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {{name: ipvs-topo-agent, namespace: {namespace}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: agent, namespace: {namespace}}}
spec: {{serviceAccountName: ipvs-topo-agent, nodeName: mine-{namespace}, containers: [{{name: agent, image: none}}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}}}
rules:
- {{apiGroups: [topology.ipvs-topo.io], resources: [topologyagents], verbs: [get, create]}}
- {{apiGroups: [topology.ipvs-topo.io], resources: [topologyagents/status], verbs: [get, patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: ServiceAccount, name: ipvs-topo-agent, namespace: {namespace}}}]
"
    )
}

fn report(node: &str) -> String {
    format!(
        "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyAgent\nmetadata: {{name: {node}}}\n"
    )
}

/// Arguments that make kubectl use this token and no other credentials.
fn as_agent<'a>(token: &'a str, server: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "--kubeconfig=/dev/null",
        "--insecure-skip-tls-verify",
        "--server",
        server,
        "--token",
        token,
    ];
    arguments.extend(rest);
    arguments
}

#[test]
fn an_agent_writes_its_own_report_and_no_other() {
    installed();
    let namespace = Namespace::new();
    let account = folder(&[role(&namespace.0)]);
    ok(&["apply", "-f", account.path().to_str().unwrap()]);
    let server = ok(&[
        "config",
        "view",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    ]);
    let create = ["create", "token", "ipvs-topo-agent", "-n", &namespace.0];
    let bound = ["--bound-object-kind=Pod", "--bound-object-name=agent"];
    let token = ok(&[&create[..], &bound[..]].concat());
    let token = token.trim();
    let (mine, other) = (
        format!("mine-{}", namespace.0),
        format!("other-{}", namespace.0),
    );
    let own = folder(&[report(&mine)]);
    let own = own.path().to_str().unwrap();
    let foreign = folder(&[report(&other)]);
    let foreign = foreign.path().to_str().unwrap();

    ok(&as_agent(token, &server, &["create", "-f", own]));
    let status = r#"{"status":{"version":"0.1.0","phase":"Serving"}}"#;
    let patch = [
        "patch",
        "topologyagent",
        &mine,
        "--subresource=status",
        "--type=merge",
        "-p",
        status,
    ];
    ok(&as_agent(token, &server, &patch));
    let words = "an agent writes the TopologyAgent of its own Node only";
    let error = refused(&as_agent(token, &server, &["create", "-f", foreign]));
    assert!(error.contains(words), "{error}");
    ok(&["create", "-f", foreign]);
    let patch = patch.map(|argument| if argument == mine { &other } else { argument });
    let error = refused(&as_agent(token, &server, &patch));
    assert!(error.contains(words), "{error}");

    let unbound = ok(&create);
    let error = refused(&as_agent(
        unbound.trim(),
        &server,
        &["create", "--dry-run=server", "-f", own],
    ));
    assert!(error.contains(words), "a token without a Pod: {error}");
    ok(&["delete", "-f", own, "-f", foreign]);
    drop(run(&[
        "delete",
        "clusterrole,clusterrolebinding",
        &namespace.0,
    ]));
}

#[test]
fn the_schema_of_a_report_is_enforced() {
    installed();
    let random = Namespace::new();
    let own = folder(&[report(&random.0)]);
    ok(&["create", "-f", own.path().to_str().unwrap()]);
    let patch = |status: &str| {
        let status = format!("{{\"status\":{status}}}");
        run(&[
            "patch",
            "topologyagent",
            &random.0,
            "--subresource=status",
            "--type=merge",
            "-p",
            &status,
        ])
    };
    let good = r#"{"version":"0.1.0","phase":"Serving","counts":{"services":3},"policies":[{"kind":"TopologyPolicy","namespace":"shop","name":"near","generation":2,"services":1}],"drains":[{"name":"b","generation":1}],"fallbacks":[{"service":"shop/cart","reason":"Panic","from":"Weighted","to":"Uniform","since":"2026-11-21T20:00:00Z"}]}"#;
    assert!(patch(good).status.success());
    let shown = ok(&["get", "tagent", &random.0, "--no-headers"]);
    let shown: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(shown[1..5], ["Serving", "0.1.0", "3", "0"]);
    for (bad, words) in [
        (r#"{"phase":"Fine"}"#, "Unsupported value"),
        (r#"{"version":null}"#, "status.version"),
        (
            r#"{"counts":{"services":-1}}"#,
            "should be greater than or equal to 0",
        ),
        (
            r#"{"drains":[{"name":"B","generation":1}]}"#,
            "in body should match",
        ),
        (
            r#"{"policies":[{"kind":"Policy","name":"near","generation":2}]}"#,
            "Unsupported value",
        ),
        (
            r#"{"fallbacks":[{"service":"shop/cart","reason":"Because","from":"a","to":"b","since":"2026-11-21T20:00:00Z"}]}"#,
            "Unsupported value",
        ),
    ] {
        let stderr = String::from_utf8(patch(bad).stderr).unwrap();
        assert!(stderr.contains(words), "{bad}: {stderr}");
    }
    ok(&["delete", "tagent", &random.0]);
}
