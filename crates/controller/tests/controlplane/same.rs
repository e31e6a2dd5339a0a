//! Agents get the same result from the `TopologyMap` and from the Nodes.

mod alone {
    //! A cluster has one `TopologyMap`.

    use cluster::index::Index;
    use controller::state::{Collection, State, WriteKind};
    use kube_io::{Access, ApiError, Connection};
    use serde_json::{Value, json};
    use tokio::runtime::Runtime;
    use topology_core::resolve::{Viewpoint, resolve};

    use crate::follower::{Follower, xtask};
    use crate::kubectl::{eventually, installed, kubectl_with, ok, variable};
    use crate::random::{self, NAMESPACE};

    const CLUSTERS: u64 = 25;
    const THE_MAP: &str = "topologymaps.topology.ipvs-topo.io";
    const OURS: &str = "/apis/topology.ipvs-topo.io/v1alpha1";

    /// Uses racks and CPU, which random policies do not.
    const BY_RACK: &str = "
apiVersion: topology.ipvs-topo.io/v1alpha1
kind: ClusterTopologyPolicy
metadata: {name: by-rack}
spec:
  mode: Balanced
  guard: {demand: AllocatableCPU}
  priority: 1000
  serviceSelector: {matchLabels: {tier: front}}
  levels: [{key: example.com/rack}, {key: topology.kubernetes.io/zone}, {any: true}]
";

    struct Server {
        runtime: Runtime,
        api: Connection,
    }

    impl Server {
        /// Stops kube-controller-manager, which would change the objects of the test.
        fn new() -> Self {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
            let api = runtime.block_on(Connection::open(&access)).unwrap();
            xtask(&["stop", "kube-controller-manager"]);
            Self { runtime, api }
        }

        /// Repeats a request until the server is not busy.
        fn ask(
            &self,
            what: &str,
            ask: &impl AsyncFn(&Connection) -> Result<Value, ApiError>,
        ) -> Value {
            eventually(what, || match self.runtime.block_on(ask(&self.api)) {
                Ok(answer) => Some(answer),
                Err(error) if error.fault.is_passing() => None,
                Err(error) => panic!("{what}: {error}"),
            })
        }

        fn empty(&self) {
            for collection in [
                format!("/api/v1/namespaces/{NAMESPACE}/services"),
                format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"),
                format!("{OURS}/namespaces/{NAMESPACE}/topologypolicies"),
                format!("{OURS}/clustertopologypolicies/default"),
                format!("{OURS}/topologydrains"),
                "/api/v1/nodes".to_owned(),
            ] {
                self.ask(
                    "emptying",
                    &async |api| match api.delete(&collection).await {
                        Err(error) if error.fault == kube_io::Fault::NotFound => Ok(Value::Null),
                        answer => answer,
                    },
                );
            }
        }

        fn fill(&self, objects: &[(String, Value)]) {
            for (path, object) in objects {
                self.ask(path, &async |api| api.create(path, object).await);
            }
        }

        /// Writes the map as the controller does, but without its pauses.
        fn map(&self) {
            let mut state = State::default();
            for collection in Collection::ALWAYS {
                let listed = self.ask("a list", &async |api| {
                    api.list(collection.list_path()).await
                });
                for object in listed["items"].as_array().unwrap() {
                    state.apply(collection, object.clone());
                }
            }
            let now = jiff::Timestamp::now().as_millisecond();
            for write in state.plan(now) {
                if write.collection == Collection::Maps {
                    let name = if write.kind == WriteKind::Create {
                        ""
                    } else {
                        &*write.name.name
                    };
                    let path = Collection::Maps.path("", name);
                    self.ask("the map", &async |api| match write.kind {
                        WriteKind::Create => api.create(&path, &write.body).await,
                        WriteKind::Delete => api.delete(&path).await,
                        WriteKind::Replace | WriteKind::Status | WriteKind::Merge => {
                            api.replace(&path, &write.body).await
                        }
                    });
                }
            }
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            xtask(&["start", "kube-controller-manager"]);
        }
    }

    /// Everything that a Node resolves from its index.
    fn resolved(index: &Index, node: &str, now: i64) -> Vec<String> {
        let viewpoint = Viewpoint {
            now: Some(now),
            ..Viewpoint::new(node)
        };
        let snapshot = index.snapshot();
        let services = snapshot.services();
        let texts =
            services.map(|service| format!("{:#?}", resolve(snapshot, &viewpoint, &service.name)));
        texts.collect()
    }

    #[test]
    fn agents_resolve_the_same_from_the_map_and_from_nodes_on_random_clusters() {
        installed();
        let server = Server::new();
        let labels = json!({"team": "x"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}});
        kubectl_with(&namespace.to_string(), &["apply", "-f", "-"]).unwrap();
        kubectl_with(BY_RACK, &["apply", "-f", "-"]).unwrap();
        let (mut services, kubeconfig) = (0, variable("KUBECONFIG"));
        for seed in 0..CLUSTERS {
            server.empty();
            server.fill(&random::cluster(seed));
            server.map();
            let mut by_map = Follower::mapped("n1", &kubeconfig);
            let mut by_nodes = Follower::new("n1", &kubeconfig);
            let mut by_whole_nodes = Follower::administrator();
            by_map.until_whole();
            by_nodes.until_whole();
            by_whole_nodes.until_whole();
            assert_eq!(by_map.state(THE_MAP).map_gap, None, "cluster {seed}");
            assert_eq!(
                by_map.state("nodes").objects,
                1,
                "only the own Node is read"
            );
            let now = jiff::Timestamp::now().as_millisecond();
            let expected = resolved(&by_map.index, "n1", now);
            for other in [by_nodes, by_whole_nodes] {
                let found = resolved(&other.index, "n1", now);
                assert_eq!(expected, found, "cluster {seed}");
            }
            services += expected.len();
        }
        assert!(services > 50, "{services} Services are few");
        server.empty();
        ok(&["delete", "ctp", "by-rack"]);
    }
}
