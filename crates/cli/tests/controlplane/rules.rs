//! The rules of the accounts of agents and DNS servers permit exactly their requests.

mod alone {
    //! Only one test may use an account.

    use agent::agent_status::{StatusClient, WriteResult};
    use agent::node_events::{self, NodeEvent};
    use cluster::api::Phase;
    use crd::topology_agent::AgentStatus;
    use kube_io::{Access, Connection};

    use crate::audit::{Audit, NAMESPACE, based, hired};
    use crate::follower::Follower;
    use crate::gate::{Gate, Proxy};
    use crate::kubectl::{eventually, kubectl_with, ok, repository};
    use crate::program::Program;

    const ACCOUNT: &str = "ipvs-topo-agent";
    const DNS_ACCOUNT: &str = "ipvs-topo-dns";
    const NODE: &str = "rules-n1";

    /// The agent's Pod on its Node.
    const OBJECTS: &str = "
{apiVersion: v1, kind: Node, metadata: {name: rules-n1}}
---
apiVersion: v1
kind: Pod
metadata: {name: rules, namespace: ipvs-topo-system}
spec: {serviceAccountName: ipvs-topo-agent, nodeName: rules-n1, containers: [{name: agent, image: none}]}
";

    /// A policy for which namespaces are read.
    const POLICY: &str = "
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: by-namespace}
spec:
  mode: Prefer
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: nowhere}}
  levels: [{key: topology.kubernetes.io/zone}, {any: true}]
";

    /// Reads everything that an agent reads. With the map as source of Nodes an agent also reads
    /// Nodes, because no map exists.
    fn follow(kubeconfig: &str) {
        let mut follower = Follower::mapped(NODE, kubeconfig);
        follower.until_whole();
        follower.until("every collection", |me| {
            (me.state("namespaces").phase == Phase::Following).then_some(())
        });
    }

    /// Writes everything that an agent writes.
    async fn report(kubeconfig: &str) {
        let access = Access::kubeconfig(kubeconfig.as_ref(), "tests");
        let client = StatusClient::new(Connection::open(&access).await.unwrap(), NODE.into());
        assert_eq!(client.read().await.unwrap(), None);
        let report = AgentStatus::default();
        assert_eq!(
            client.write(&report, false).await.unwrap(),
            WriteResult::Written
        );
        assert_eq!(client.read().await.unwrap(), Some(report));
        let connection = Connection::open(&access).await.unwrap();
        let event = NodeEvent::starting();
        node_events::write(&connection, NODE, &event).await.unwrap();
        let described = ok(&["describe", "node", NODE]);
        assert!(described.contains("ipvs-topo.io/agent"), "{described}");
    }

    #[test]
    fn the_rules_are_exactly_those_that_the_agent_needs() {
        let folder = tempfile::tempdir().unwrap();
        based();
        kubectl_with(OBJECTS, &["apply", "-f", "-"]).unwrap();
        kubectl_with(POLICY, &["apply", "-f", "-"]).unwrap();
        let bound = ["--bound-object-kind=Pod", "--bound-object-name=rules"];
        let kubeconfig = hired(ACCOUNT, &bound, folder.path());
        let audit = Audit::of(ACCOUNT);
        follow(&kubeconfig);
        // This proxy refuses to stream lists, so the agent reads pages.
        let proxy = Proxy::start(&kubeconfig);
        let gate = Gate::before(&proxy.address);
        gate.answer("sendInitialEvents", 422, "", "no lists as streams");
        follow(&gate.kubeconfig(folder.path()));
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(report(&kubeconfig));
        audit.replay();
        ok(&["delete", "tagent", NODE]);
        ok(&["delete", "pod", "rules", "-n", NAMESPACE, "--force"]);
        ok(&["delete", "node", NODE]);
        ok(&["delete", "ctp", "by-namespace"]);
    }

    /// What a DNS server watches. The list of a resource comes first, and its watch may begin after the first answers.
    const DNS_RESOURCES: [&str; 10] = [
        "clustertopologypolicies",
        "endpointslices",
        "namespaces",
        "nodes",
        "podmaps",
        "servicecidrs",
        "services",
        "topologydrains",
        "topologymaps",
        "topologypolicies",
    ];

    /// Their account, in the namespace whose requests are in the audit log.
    fn dns_account() -> String {
        let path = repository("manifests/components/dns/account.yaml");
        let text = std::fs::read_to_string(path).unwrap();
        text.replace("namespace: kube-system", &format!("namespace: {NAMESPACE}"))
    }

    #[test]
    fn the_rules_are_exactly_those_that_dns_servers_need() {
        let folder = tempfile::tempdir().unwrap();
        based();
        kubectl_with(&dns_account(), &["apply", "-f", "-"]).unwrap();
        kubectl_with(POLICY, &["apply", "-f", "-"]).unwrap();
        let kubeconfig = hired(DNS_ACCOUNT, &[], folder.path());
        let audit = Audit::of(DNS_ACCOUNT);
        // This proxy refuses to stream lists, so the server reads pages.
        let proxy = Proxy::start(&kubeconfig);
        let gate = Gate::before(&proxy.address);
        gate.answer("sendInitialEvents", 422, "", "no lists as streams");
        let kubeconfig = gate.kubeconfig(folder.path());
        let given = tempfile::tempdir().unwrap();
        // With the map as source of Nodes the server also reads Nodes, because no map exists.
        let options = ["--kubeconfig", &kubeconfig, "--node-source", "map"];
        let program = Program::start(given, &options);
        program.line_with("the cluster is read");
        eventually("a watch of every resource", || {
            let requests = audit.requests();
            let is_watched = |resource: &&str| {
                let mut all = requests.iter();
                all.any(|request| request.verb == "watch" && request.resource == *resource)
            };
            DNS_RESOURCES.iter().all(is_watched).then_some(())
        });
        audit.replay();
        drop(program);
        kubectl_with(&dns_account(), &["delete", "-f", "-"]).unwrap();
        ok(&["delete", "ctp", "by-namespace"]);
    }
}
