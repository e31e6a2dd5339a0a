//! The real kube-proxy in ipvs mode programs the same tables as `ipvs-topo render`, for the same API objects, except for
//! the reviewed differences.

#[path = "kube_proxy/compare.rs"]
mod compare;
#[path = "kube_proxy/differences.rs"]
#[expect(dead_code, reason = "`docs.rs` makes a page of the texts")]
mod differences;
#[path = "kube_proxy/explain.rs"]
mod explain;
#[path = "kube_proxy/facts.rs"]
mod facts;
#[path = "kube_proxy/guest.rs"]
mod guest;
#[path = "kube_proxy/predicted.rs"]
mod predicted;
#[path = "kube_proxy/table.rs"]
mod table;

mod alone {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::compare::{cluster, compare};
    use super::differences::Difference;
    use super::explain::Comparison;
    use super::facts::NODE;
    use super::guest::Guest;
    use super::table;
    use crate::random::NAMESPACE;
    use crate::server::Server;

    /// The number of random clusters, unless `KUBE_PROXY_CLUSTERS` is set.
    const CLUSTERS: u16 = 100;
    /// The first generation, which is a port.
    const FIRST: u16 = 1000;
    fn clusters() -> u16 {
        let set = std::env::var("KUBE_PROXY_CLUSTERS").ok();
        set.map_or(CLUSTERS, |text| text.parse().unwrap())
    }

    /// The objects whose generation the guest waits for.
    fn sentinel(generation: u16) -> Vec<(String, Value)> {
        let families = [("IPv4", "10.244.255.254"), ("IPv6", "fd00:10:244::fffe")];
        let slices = families.map(|(family, address)| {
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
                "metadata": {
                    "name": format!("sentinel-{}", family.to_lowercase()), "namespace": NAMESPACE,
                    "labels": {"kubernetes.io/service-name": "sentinel"},
                },
                "ports": [{"name": "", "protocol": "TCP", "port": generation}],
                "endpoints": [{"addresses": [address]}],
            })
        });
        let addresses = ["10.96.255.254", "fd00:10:96::fffe"];
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "sentinel", "namespace": NAMESPACE},
            "spec": {
                "clusterIP": addresses.first(), "clusterIPs": addresses,
                "ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack",
                "ports": [{"port": generation}],
            },
        });
        let path = |kind: &str| match kind {
            "Service" => format!("/api/v1/namespaces/{NAMESPACE}/services"),
            _ => format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"),
        };
        let mut objects = vec![(path("Service"), service)];
        objects.extend(slices.map(|slice| (path("EndpointSlice"), slice)));
        objects
    }

    /// Replaces the cluster; the own Node stays, with other labels.
    async fn replace(server: &Server, seed: u64, generation: u16) -> Value {
        server.empty_except_node(NODE).await;
        let mut objects = cluster(seed);
        let own = objects.iter().position(|(_, object)| {
            object.pointer("/kind").is_some_and(|kind| kind == "Node")
                && object
                    .pointer("/metadata/name")
                    .is_some_and(|name| name == NODE)
        });
        let (_, own) = objects.remove(own.unwrap());
        server
            .label_node(NODE, own.pointer("/metadata/labels").unwrap())
            .await;
        server.fill(objects).await;
        server.fill(sentinel(generation)).await;
        server.written().await
    }

    #[test]
    fn random_clusters_give_the_same_tables_except_for_the_reviewed_differences() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(Server::alone());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.json");
        let count = clusters();
        runtime.block_on(async {
            server.empty().await;
            server.namespace(NAMESPACE, &json!({})).await;
            let own = cluster(0).into_iter().filter(|(_, object)| {
                object
                    .pointer("/metadata/name")
                    .is_some_and(|name| name == NODE)
            });
            server.fill(own.collect()).await;
        });
        let guest = Guest::start(folder.path(), FIRST + count - 1);
        let mut seen = BTreeMap::new();
        let (mut servers, mut reals) = (0, 0);
        for seed in 0..count {
            let generation = FIRST + seed;
            let written = runtime.block_on(replace(&server, seed.into(), generation));
            let theirs = guest.table(generation);
            let mut comparison = Comparison::default();
            compare(&mut comparison, &path, &written, &table::parse(&theirs));
            let unexplained = &comparison.unexplained;
            assert!(
                unexplained.is_empty(),
                "cluster {seed}: no reviewed difference explains:\n{}",
                unexplained.join("\n")
            );
            for (difference, times) in comparison.seen {
                *seen.entry(difference).or_insert(0) += times;
            }
            servers += theirs.iter().filter(|line| line.starts_with("-A ")).count();
            reals += theirs.iter().filter(|line| line.starts_with("-a ")).count();
        }
        println!("{count} clusters, {servers} virtual servers, {reals} real servers: {seen:?}");
        let unseen = Difference::ALL.into_iter().filter(|one| {
            // Of two Services with one address, kube-proxy may serve the same one, by chance.
            *one != Difference::Contested && !seen.contains_key(one)
        });
        let unseen: Vec<_> = unseen.collect();
        assert!(
            count < CLUSTERS || unseen.is_empty(),
            "these differences do not occur any more: {unseen:?}"
        );
        runtime.block_on(server.empty());
    }
}
