//! A Service of ten thousand endpoints. The result does not depend on the order of its slices, or
//! on slices that change their Service.

use cli::args::ServiceArgs;
use cli::offline::{Offline, Resolved};
use cli::output::{print, save};
use kube_io::{Access, Connection, Patch};
use serde_json::{Value, json};
use topology_core::model::ObjectName;
use topology_core::resolve::{ResolvedServer, Viewpoint, resolve};

use crate::follower::Follower;
use crate::kubectl::{Namespace, variable};
use crate::random::Dice;
use crate::server::origin;

/// The maximum of endpoints in a slice of Kubernetes' own controller, and the number of slices.
const HUNDRED: usize = 100;

/// The number of runs, each with another order.
const ORDERS: u64 = 4;

/// Three Nodes in three zones, and two Services, the first with many endpoints.
struct Cluster {
    namespace: Namespace,
    api: Connection,
}

impl Cluster {
    async fn new(namespace: Namespace) -> Self {
        let access = Access::kubeconfig(variable("KUBECONFIG").as_ref(), "tests");
        let api = Connection::open(&access).await.unwrap();
        let cluster = Self { namespace, api };
        for zone in ["a", "b", "c"] {
            let name = cluster.node(zone);
            let labels =
                json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
            cluster.api.create("/api/v1/nodes", &node).await.unwrap();
        }
        for name in ["large", "other"] {
            let weights = json!({"topology.ipvs-topo.io/weights": "node=80,zone=15,*=5"});
            let service = json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "annotations": weights},
                "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
            });
            let path = format!("/api/v1/namespaces/{}/services", cluster.namespace.0);
            cluster.api.create(&path, &service).await.unwrap();
        }
        cluster
    }

    fn node(&self, zone: &str) -> String {
        format!("{}-{zone}", self.namespace.0)
    }

    fn slices(&self) -> String {
        format!(
            "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
            self.namespace.0
        )
    }

    /// A slice of the Service with many endpoints.
    fn slice(&self, number: usize) -> Value {
        let endpoint = |at: usize| {
            let zone = ["a", "b", "c", "c"][(number + at) % 4];
            json!({
                "addresses": [format!("10.245.{number}.{at}")], "nodeName": self.node(zone), "zone": zone,
                "conditions": {"ready": !(number * at).is_multiple_of(7)},
            })
        };
        let endpoints: Vec<Value> = (1..=HUNDRED).map(endpoint).collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": format!("large-{number}"), "labels": {"kubernetes.io/service-name": "large"}},
            "ports": [{"name": "http", "protocol": "TCP", "port": 8080}], "endpoints": endpoints,
        })
    }

    async fn fill(&self, order: &[usize]) {
        for number in order {
            self.api
                .create(&self.slices(), &self.slice(*number))
                .await
                .unwrap();
        }
    }

    /// Waits until the Services have these numbers of endpoints.
    fn wait(&self, follower: &mut Follower, counts: [usize; 2]) {
        follower.until(&format!("{counts:?} endpoints"), |me| {
            let count = |name: &str| -> usize {
                let name = ObjectName::new(&*self.namespace.0, name);
                let slices = me.index.snapshot().slices(&name).iter();
                slices.map(|slice| slice.endpoints.len()).sum()
            };
            (["large", "other"].map(count) == counts).then_some(())
        });
    }

    /// `render` of both Services, in two formats.
    fn rendered(&self, servers: Vec<ResolvedServer>) -> [String; 2] {
        let ours = |one: &ResolvedServer| *one.service.namespace == *self.namespace.0;
        let servers: Vec<ResolvedServer> = servers.into_iter().filter(ours).collect();
        let lines = save::save(&servers.iter().map(|one| &one.server).collect::<Vec<_>>());
        let resolved = Resolved {
            servers,
            warnings: Vec::new(),
            not_programmed: Vec::new(),
        };
        [lines, print::json(&resolved.view("any")).unwrap()]
    }

    /// The output of an agent that has watched all changes.
    fn followed(&self, follower: &Follower) -> [String; 2] {
        let me = Viewpoint {
            now: Some(0),
            ..Viewpoint::new(&*self.node("a"))
        };
        let names = ["large", "other"].map(|name| ObjectName::new(&*self.namespace.0, name));
        let snapshot = follower.index.snapshot();
        let servers = names
            .iter()
            .flat_map(|name| resolve(snapshot, &me, name).servers);
        self.rendered(servers.collect())
    }

    /// The output after reading everything now.
    fn read(&self) -> [String; 2] {
        let args = ServiceArgs {
            service_cidr: Vec::new(),
            scheduler: topology_core::scheduler::Scheduler::Wrr,
            nodeport_addresses: Vec::new(),
            fwmark_mask: topology_core::snapshot::MarkMask::default(),
            allow_lists: cli::args::AllowListArgs::default(),
        };
        let read = Offline::read(&origin(), &self.node("a"), &args, 0);
        let read = read.unwrap_or_else(|failure| panic!("{}", failure.message()));
        self.rendered(read.resolve().servers)
    }
}

#[test]
fn ten_thousand_endpoints_in_any_order_and_a_slice_that_changes_its_service() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let cluster = runtime.block_on(Cluster::new(Namespace::new()));
    let mut follower = Follower::administrator();
    follower.until_whole();
    let mut seen: Vec<[String; 2]> = Vec::new();
    for seed in 0..ORDERS {
        let order = Dice::new(seed).shuffled(HUNDRED);
        runtime.block_on(cluster.fill(&order));
        cluster.wait(&mut follower, [HUNDRED * HUNDRED, 0]);
        seen.push(cluster.followed(&follower));
        if seed + 1 < ORDERS {
            runtime
                .block_on(cluster.api.delete(&cluster.slices()))
                .unwrap();
            cluster.wait(&mut follower, [0, 0]);
        }
    }
    let first = &seen[0];
    assert!(first[0].lines().count() > HUNDRED * HUNDRED / 2);
    assert!(
        seen.iter().all(|one| one == first),
        "the order must not matter"
    );
    assert!(*first == cluster.read(), "a new read must give the same");

    let moved = json!({"metadata": {"labels": {"kubernetes.io/service-name": "other"}}});
    let path = format!("{}/large-7", cluster.slices());
    runtime
        .block_on(cluster.api.patch(&path, Patch::Merge, &moved))
        .unwrap();
    cluster.wait(&mut follower, [HUNDRED * (HUNDRED - 1), HUNDRED]);
    assert!(
        cluster.followed(&follower) == cluster.read(),
        "the watching agent must give the same"
    );
    for zone in ["a", "b", "c"] {
        let path = format!("/api/v1/nodes/{}", cluster.node(zone));
        runtime.block_on(cluster.api.delete(&path)).unwrap();
    }
}
