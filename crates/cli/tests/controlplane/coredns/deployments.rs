//! The lines of `docs/dns.md` for the Corefiles of `NodeLocal DNSCache` and of `CoreDNS`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::cluster::{DnsCluster, LARGE, ZONES};
use super::questions::{Question, questions};
use super::reply::Reply;
use super::servers::{CoreDns, Servers, usual};
use super::zonal::{self, DIRECTIVES};
use crate::client::{N1, over_udp};
use crate::kubectl::variable;
use crate::program::Program;

const DOCUMENT: &str = include_str!("../../../../../docs/dns.md");

/// The headless Service in the document's rules.
const DOCUMENTED: &str = "cart.shop.";

/// The random clusters of whose names all are asked.
const RANDOM: usize = 5;

/// How many answers were compared.
#[derive(Debug, Default)]
pub(crate) struct DeploymentCounts {
    /// Through `NodeLocal DNSCache`, by the response code.
    forwarded: BTreeMap<String, usize>,
    /// Those of the server behind ours, which cannot answer.
    failed_over: usize,
    /// Through the rules of `CoreDNS`: those with all endpoints and with some.
    rewritten: [usize; 2],
}

/// The lines of the Corefile below a heading.
fn lines_below(heading: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(heading).unwrap();
    let (_, rest) = rest.split_once("```text\n").unwrap();
    rest.split_once("\n```").unwrap().0
}

pub(crate) fn compare(
    servers: &Servers,
    random: &[DnsCluster],
    zonal: &[DnsCluster],
) -> DeploymentCounts {
    let mut counts = DeploymentCounts::default();
    let some: Vec<_> = random.iter().take(RANDOM).chain(zonal).collect();
    forwarded(servers, &some, &mut counts);
    failed_over(servers, zonal, &mut counts);
    rewritten(servers, zonal, &mut counts);
    let DeploymentCounts {
        forwarded,
        failed_over,
        rewritten: [whole, part],
    } = &counts;
    let is_complete = forwarded.len() > 1 && *failed_over > 0 && *whole > 0 && *part > 0;
    assert!(is_complete, "{counts:?}");
    counts
}

/// `CoreDNS` with the lines for `NodeLocal DNSCache`, which asks these two servers.
fn node_local(first: SocketAddr, second: SocketAddr) -> CoreDns {
    let lines = lines_below("### B. ");
    for address in ["127.0.0.1:5353", "10.96.0.10"] {
        assert_eq!(lines.matches(address).count(), 1, "{lines}");
    }
    let lines = lines.replace("127.0.0.1:5353", &first.to_string());
    let lines = lines.replace("10.96.0.10", &second.to_string());
    CoreDns::start("cluster.local", &lines, &[])
}

/// Answers through `NodeLocal DNSCache` are those of our server to a client on its node.
fn forwarded(servers: &Servers, clusters: &[&DnsCluster], counts: &mut DeploymentCounts) {
    let cache = node_local(servers.ours(), servers.theirs());
    for cluster in clusters {
        for question in questions(cluster).into_iter().filter(is_forwarded) {
            let message = usual(&question.name, question.record_type);
            let ask = |server| over_udp(N1, server, &message);
            let (through, ours) = (ask(cache.address), ask(servers.ours()));
            assert_eq!(Reply::of(&through), Reply::of(&ours), "{question:?}");
            let code = ours.metadata.response_code.to_string();
            *counts.forwarded.entry(code).or_insert(0) += 1;
        }
    }
}

/// Whether `NodeLocal DNSCache` asks our server. Replies that may not fit are left out: `CoreDNS` encodes them again, and
/// may cut them at another record.
fn is_forwarded(question: &Question) -> bool {
    let name = question.name.to_lowercase();
    let is_large = LARGE.iter().any(|(large, _)| name.contains(large));
    name.ends_with("cluster.local.") && !is_large
}

/// Where our server does not run, or has not read the cluster, the answers are those of `CoreDNS`.
fn failed_over(servers: &Servers, clusters: &[DnsCluster], counts: &mut DeploymentCounts) {
    let absent = SocketAddr::from(([127, 0, 0, 1], 1));
    let unread = Program::in_folder(tempfile::tempdir().unwrap(), &[]);
    for first in [absent, unread.address] {
        failed_over_from(first, servers, clusters, counts);
    }
}

fn failed_over_from(
    first: SocketAddr,
    servers: &Servers,
    clusters: &[DnsCluster],
    counts: &mut DeploymentCounts,
) {
    let cache = node_local(first, servers.theirs());
    for cluster in clusters {
        for service in &cluster.services {
            let name = format!("{}.{}.svc.cluster.local.", service.name, cluster.namespace);
            let message = usual(&name, RecordType::A);
            let ask = |server| Reply::of(&over_udp(N1, server, &message));
            assert_eq!(ask(cache.address), ask(servers.theirs()), "{name}");
            counts.failed_over += 1;
        }
    }
}

/// Plain names through the rules of `CoreDNS` have the answers of our preference for the client's zone.
fn rewritten(servers: &Servers, clusters: &[DnsCluster], counts: &mut DeploymentCounts) {
    let all = [RecordType::A, RecordType::AAAA, RecordType::SRV];
    for (index, zone) in ZONES.iter().enumerate() {
        let client = zonal::client(index + 1);
        let coredns = with_rules(clusters, zone);
        for cluster in clusters {
            for service in &cluster.services {
                let name = format!("{}.{}.svc.cluster.local.", service.name, cluster.namespace);
                for record_type in all {
                    let message = usual(&name, record_type);
                    let ask = |server| zonal::answer(&over_udp(client, server, &message), &name);
                    let plain = ask(servers.theirs());
                    let mut ours = ask(servers.ours());
                    if plain.0 == ResponseCode::NXDomain {
                        // CoreDNS has the zones of a Service that has no ready endpoint, but not its name.
                        assert_eq!(ours, plain, "{name}");
                        ours = zonal::answer_without_data();
                    }
                    assert_eq!(ask(coredns.address), ours, "{record_type} {name} in {zone}");
                    if !ours.1.is_empty() {
                        counts.rewritten[usize::from(ours != plain)] += 1;
                    }
                }
            }
        }
    }
}

/// `CoreDNS` with the lines for it in a zone, and with a rule for each Service.
fn with_rules(clusters: &[DnsCluster], zone: &str) -> CoreDns {
    let lines = lines_below("### C. ");
    let rule = lines
        .lines()
        .find(|line| line.contains(DOCUMENTED))
        .unwrap();
    assert!(rule.contains(".prefer."), "{rule}");
    let mut rules = Vec::new();
    for cluster in clusters {
        for (service, directive) in cluster.services.iter().zip(DIRECTIVES) {
            let own = format!("{}.{}.", service.name, cluster.namespace);
            let rule = rule.replace(DOCUMENTED, &own);
            rules.push(rule.replace(".prefer.", &format!(".{directive}.")));
        }
    }
    let own_server = format!("zonal\n        kubeconfig {}\n", variable("KUBECONFIG"));
    assert_eq!(lines.matches("zonal\n").count(), 1, "{lines}");
    let lines = lines.replace(rule, &rules.join("\n"));
    CoreDns::start(
        ".",
        &lines.replace("zonal\n", &own_server),
        &[("ZONE", zone)],
    )
}
