//! `ipvs-topo dns` and `CoreDNS` answer the same for the same API objects, except for the reviewed differences.

#[path = "coredns/cluster.rs"]
mod cluster;
#[path = "coredns/compare.rs"]
mod compare;
#[path = "coredns/deployments.rs"]
mod deployments;
#[path = "coredns/differences.rs"]
#[expect(dead_code, reason = "`docs.rs` makes a page of the texts")]
mod differences;
#[path = "coredns/questions.rs"]
mod questions;
#[path = "coredns/reply.rs"]
mod reply;
#[path = "coredns/rules.rs"]
mod rules;
#[path = "coredns/servers.rs"]
mod servers;
#[path = "coredns/upstream.rs"]
mod upstream;
#[path = "coredns/zonal.rs"]
mod zonal;

mod alone {
    use std::time::Instant;

    use hickory_proto::rr::RecordType;
    use serde_json::{Value, json};

    use super::cluster::{DnsCluster, nodes};
    use super::compare::Comparison;
    use super::deployments;
    use super::differences::ROWS;
    use super::servers::{Servers, usual};
    use super::zonal;
    use crate::client::{N1, answers, over_udp};
    use crate::program::PATIENCE;
    use crate::server::Server;

    /// The number of random clusters, unless `COREDNS_CLUSTERS` is set.
    const CLUSTERS: u8 = 50;

    /// The number of clusters whose Services prefer zones.
    const ZONAL: u8 = 10;

    fn clusters() -> u8 {
        let set = std::env::var("COREDNS_CLUSTERS").ok();
        set.map_or(CLUSTERS, |text| text.parse().unwrap())
    }

    /// Writes all clusters, each in its namespace, and the sentinel last.
    async fn write(server: &Server, clusters: &[DnsCluster], zonal: &[DnsCluster]) {
        server.empty().await;
        // In order, so that the last one is the last that servers read.
        for node in nodes() {
            server.fill(vec![node]).await;
        }
        server.namespace("empty", &json!({})).await;
        let all = clusters.iter().chain(zonal);
        for cluster in all.clone() {
            server.namespace(&cluster.namespace, &json!({})).await;
        }
        let mut objects: Vec<(String, Value)> = all.flat_map(DnsCluster::objects).collect();
        objects.extend(zonal.iter().map(DnsCluster::policy));
        server.fill(objects).await;
        let sentinel = DnsCluster::sentinel();
        server.namespace(&sentinel.namespace, &json!({})).await;
        server.fill(sentinel.objects()).await;
        server.fill(vec![sentinel.policy()]).await;
    }

    /// Returns when both servers have read what was written last.
    fn wait(servers: &Servers) {
        let question = usual("sentinel.sentinel.svc.cluster.local.", RecordType::A);
        let begin = Instant::now();
        for (server, expected) in [
            (servers.theirs(), &["10.255.0.1", "10.255.0.4"][..]),
            // The client's zone, by the policy.
            (servers.ours(), &["10.255.0.4"]),
        ] {
            while answers(&over_udp(zonal::client(4), server, &question)) != expected {
                assert!(begin.elapsed() < PATIENCE, "{server} has not read all");
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }

    #[test]
    fn random_clusters_have_the_same_answers_except_for_the_reviewed_differences() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(Server::alone());
        let count = clusters();
        let random: Vec<_> = (0..count).map(DnsCluster::random).collect();
        let zonal: Vec<_> = (0..ZONAL).map(DnsCluster::zonal).collect();
        let begin = Instant::now();
        runtime.block_on(write(&server, &random, &zonal));
        println!("written after {:.1} s", begin.elapsed().as_secs_f64());
        let servers = Servers::start();
        wait(&servers);
        println!(
            "both have read them after {:.1} s",
            begin.elapsed().as_secs_f64()
        );
        let mut comparison = Comparison::new(&servers, N1);
        for cluster in &random {
            comparison.ask_about(cluster);
        }
        println!(
            "{count} clusters, {} questions after {:.1} s: {:?}",
            comparison.questions,
            begin.elapsed().as_secs_f64(),
            comparison.seen
        );
        comparison.assert_explained();
        let unseen = ROWS.map(|row| row.difference).into_iter();
        let unseen: Vec<_> = unseen
            .filter(|one| !comparison.seen.contains_key(one))
            .collect();
        assert!(
            count < CLUSTERS || unseen.is_empty(),
            "these differences do not occur any more: {unseen:?}"
        );
        let counts = zonal::compare(&servers, &zonal);
        println!("{counts:?} after {:.1} s", begin.elapsed().as_secs_f64());
        let counts = deployments::compare(&servers, &random, &zonal);
        println!("{counts:?} after {:.1} s", begin.elapsed().as_secs_f64());
        runtime.block_on(server.empty());
    }
}
