//! The agent's `TopologyAgent` object in a real API server, with the account and the rules of
//! `manifests/base`.

use std::path::Path;

use agent::agent_status::{Aggregate, Contribution, DecisionSummary, StatusClient, WriteResult};
use cli::origin::Origin;
use cluster::source::{Options, read_text};
use crd::MAX_REPORT_BYTES;
use crd::topology_agent::{AgentCounts, AgentPhase, AgentStatus, NodeWarning};
use kube_io::{Access, Connection};
use topology_core::model::{ObjectName, PolicyName};
use topology_core::resolve::{Viewpoint, resolve};

use crate::kubectl::{installed, kubectl, kubectl_with, variable};

const NAMESPACE: &str = "test-report";
const NODE: &str = "test-report-n1";

/// Two Nodes; the agent's account and Pod on the first; a Service with an endpoint on the second.
const OBJECTS: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: test-report}}
---
{apiVersion: v1, kind: Node, metadata: {name: test-report-n1, labels: {topology.kubernetes.io/zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: test-report-n2, labels: {topology.kubernetes.io/zone: b}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ipvs-topo-agent, namespace: test-report}}
---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: test-report}
spec: {serviceAccountName: ipvs-topo-agent, nodeName: test-report-n1, containers: [{name: agent, image: none}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-report}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ipvs-topo-agent}
subjects: [{kind: ServiceAccount, name: ipvs-topo-agent, namespace: test-report}]
---
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: TopologyPolicy
metadata: {name: near, namespace: test-report}
spec: {mode: Prefer, levels: [{key: topology.kubernetes.io/zone}, {any: true}]}
---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: test-report}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: far, namespace: test-report, labels: {kubernetes.io/service-name: far}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.9.9], nodeName: test-report-n2}]
";

fn manifest(path: &str) -> String {
    format!("{}/../../manifests/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Creates the objects, and writes a kubeconfig for the account of the first Node's agent.
fn account(folder: &Path) -> String {
    installed();
    let rules = std::fs::read_to_string(manifest("base/agent-account.yaml")).unwrap();
    let mut rules = rules.split("---\n");
    let role = rules
        .find(|one| one.contains("kind: ClusterRole\n"))
        .unwrap();
    kubectl_with(role, &["apply", "-f", "-"]).unwrap();
    kubectl_with(OBJECTS, &["apply", "-f", "-"]).unwrap();
    let create = ["create", "token", "ipvs-topo-agent", "-n", NAMESPACE];
    let bound = ["--bound-object-kind=Pod", "--bound-object-name=agent"];
    let token = kubectl(&[&create[..], &bound].concat()).unwrap();
    let server = "-o=jsonpath={.clusters[0].cluster.server}";
    let server = kubectl(&["config", "view", server]).unwrap();
    let authority = format!("{}/ca.crt", variable("CONTROLPLANE_FOLDER"));
    let path = folder.join("agent.kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: it, contexts: [{{name: it, context: {{cluster: it, user: it}}}}], clusters: [{{name: it, cluster: {{server: '{server}', certificate-authority: '{authority}'}}}}], users: [{{name: it, user: {{token: {}}}}}]}}\n",
        token.trim()
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The decisions of the first Node's agent.
fn decided(kubeconfig: &str) -> DecisionSummary {
    let origin = Origin::Api(Access::kubeconfig(kubeconfig.as_ref(), "test"));
    let read = origin.read(&Options::default());
    let snapshot = read
        .unwrap_or_else(|failure| panic!("{}", failure.message()))
        .snapshot;
    let name = ObjectName::new(NAMESPACE, "far");
    let mut aggregate = Aggregate::default();
    let contribution = Contribution::of(&resolve(&snapshot, &Viewpoint::new(NODE), &name));
    aggregate.replace(&name, contribution, 0);
    aggregate.summarize(&snapshot, 0, NODE)
}

async fn client(kubeconfig: &str, node: &str) -> StatusClient {
    let access = Access::kubeconfig(kubeconfig.as_ref(), "tests");
    StatusClient::new(Connection::open(&access).await.unwrap(), node.into())
}

/// The status of one node. 600 policies of one namespace with the longest possible names, and one
/// policy of another namespace, decide a Service each, and each Service has a fallback.
fn crowded() -> AgentStatus {
    let spec = "{mode: Hard, levels: [{key: zone}], serviceSelector: {matchLabels: {it: IT}}}";
    let mut text = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {NODE}, labels: {{topology.kubernetes.io/zone: a}}}}}}\n"
    );
    let mut names = Vec::new();
    for number in 0..=600 {
        let (namespace, name) = match number {
            600 => ("shop", "near".to_owned()),
            _ => ("aaa", format!("{number:0>253}")),
        };
        let (high, low) = (number / 250, number % 250 + 1);
        let spec = spec.replace("IT", &format!("s{number}"));
        text.extend([format!(
            "---\n{{apiVersion: topology.ipvs-topo.io/v1alpha1, kind: TopologyPolicy, metadata: {{name: '{name}', namespace: {namespace}, generation: 3}}, spec: {spec}}}\n\
             ---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: {namespace}, labels: {{it: s{number}}}}}, spec: {{clusterIP: 10.96.{high}.{low}, ports: [{{port: 80}}]}}}}\n\
             ---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: s{number}, namespace: {namespace}, labels: {{kubernetes.io/service-name: s{number}}}}}, addressType: IPv4, ports: [{{port: 80}}], endpoints: [{{addresses: [10.244.{high}.{low}]}}]}}\n"
        )]);
        names.push(ObjectName::new(namespace, format!("s{number}")));
    }
    let loaded = read_text("crowded", text.as_bytes(), &Options::default()).unwrap();
    let mut aggregate = Aggregate::default();
    for (at, name) in names.iter().enumerate() {
        let contribution =
            Contribution::of(&resolve(&loaded.snapshot, &Viewpoint::new(NODE), name));
        aggregate.replace(name, contribution, i64::try_from(at).unwrap() * 1000);
    }
    let summary = aggregate.summarize(&loaded.snapshot, 0, NODE);
    AgentStatus {
        version: "0.1.0".to_owned(),
        policies: summary.policies,
        fallbacks: summary.fallbacks,
        ..AgentStatus::default()
    }
}

/// A field of the `TopologyAgent` object.
fn field(path: &str) -> String {
    let output = format!("-o=jsonpath={path}");
    kubectl(&["get", "topologyagent", NODE, &output]).unwrap()
}

/// The API server accepts the largest possible status, which has every namespace.
async fn takes_the_largest(client: &StatusClient) {
    let crowded = crowded();
    assert!(serde_json::to_vec(&crowded).unwrap().len() <= MAX_REPORT_BYTES);
    assert_eq!(
        client.write(&crowded, true).await.unwrap(),
        WriteResult::Written
    );
    let read = client.read().await.unwrap().unwrap();
    assert_eq!(read, crowded);
    assert!(read.policies.len() > 100, "{}", read.policies.len());
    let near = PolicyName::namespaced("shop", "near");
    assert!(read.policies.iter().any(|one| one.policy == near));
    let mut fallbacks = read.fallbacks.iter();
    assert!(fallbacks.any(|one| one.policy.as_ref() == Some(&near)));
}

/// The agent's status while a kube-proxy runs on the node.
fn with_warning(summary: DecisionSummary) -> AgentStatus {
    AgentStatus {
        version: "0.1.0".to_owned(),
        phase: AgentPhase::Serving,
        policies: summary.policies,
        drains: summary.drains,
        fallbacks: summary.fallbacks,
        warnings: vec![NodeWarning {
            code: "OtherProxy".to_owned(),
            message: "a kube-proxy in ipvs mode runs on this node".to_owned(),
        }],
        counts: AgentCounts {
            services: 1,
            policies: 1,
            fallbacks: 1,
            ..AgentCounts::default()
        },
    }
}

#[test]
fn an_agent_reports_with_the_rules_of_the_base_and_the_report_is_owned_by_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = account(folder.path());
    let mut summary = decided(&kubeconfig);
    summary.drains.clear();
    assert_eq!(summary.policies.len(), 1, "one policy decides a Service");
    assert_eq!(
        (summary.policies[0].generation, summary.policies[0].services),
        (1, 1)
    );
    assert_eq!(
        summary.fallbacks[0].policy,
        Some(PolicyName::namespaced(NAMESPACE, "near"))
    );
    let report = with_warning(summary);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mine = client(&kubeconfig, NODE).await;
        assert_eq!(mine.read().await.unwrap(), None);
        assert_eq!(
            mine.write(&report, false).await.unwrap(),
            WriteResult::Written
        );
        assert_eq!(mine.read().await.unwrap().as_ref(), Some(&report));
        let owner = "{.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name}";
        assert_eq!(field(owner), format!("Node/{NODE}"));
        let table = kubectl(&["get", "topologyagent", NODE]).unwrap();
        assert!(table.contains("OtherProxy"), "{table}");

        // A value missing in the status is removed. A deleted object is created again.
        let less = AgentStatus {
            policies: Vec::new(),
            drains: Vec::new(),
            fallbacks: Vec::new(),
            ..report.clone()
        };
        assert_eq!(mine.write(&less, true).await.unwrap(), WriteResult::Written);
        assert_eq!(mine.read().await.unwrap(), Some(less));
        kubectl(&["delete", "topologyagent", NODE]).unwrap();
        assert_eq!(
            mine.write(&report, true).await.unwrap(),
            WriteResult::Written
        );
        assert_eq!(field("{.status.fallbacks[0].reason}"), "Empty");

        takes_the_largest(&mine).await;
        assert_eq!(
            mine.write(&report, true).await.unwrap(),
            WriteResult::Written
        );

        let other = client(&kubeconfig, "test-report-n2").await;
        let refused = other.write(&report, false).await.unwrap_err();
        assert!(refused.message.contains("its own Node only"), "{refused}");
        let unknown = client(&variable("KUBECONFIG"), "test-report-unknown").await;
        assert_eq!(
            unknown.write(&report, false).await.unwrap(),
            WriteResult::NoNode
        );
    });
    kubectl(&["delete", "topologyagent", NODE]).unwrap();
    kubectl_with(OBJECTS, &["delete", "--wait=false", "-f", "-"]).unwrap();
}
