//! A policy for the client's zone gives the answers of `CoreDNS`'s names of zones.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;

use super::cluster::{DnsCluster, ZONES};
use super::reply::Reply;
use super::servers::{Servers, usual};
use crate::client::over_udp;

/// The policies of the Services of a cluster: the second one is a `TopologyPolicy`, the last one permits only the zone.
pub(crate) const DIRECTIVES: [&str; 3] = ["prefer", "prefer", "pin"];

/// Answers to a client come in turns, of which some are compared.
const TURNS: usize = 3;

/// How many answers were compared, by what they have.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    whole: usize,
    part: usize,
    no_data: usize,
    no_such_name: usize,
}

/// The answer without the name in question, which differs.
pub(crate) type ZoneAnswer = (ResponseCode, BTreeSet<String>, BTreeSet<String>);

/// A pod on the Node `nN`.
pub(crate) fn client(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, u8::try_from(node).unwrap(), 7)
}

pub(crate) fn compare(servers: &Servers, clusters: &[DnsCluster]) -> Counts {
    let mut counts = Counts::default();
    for cluster in clusters {
        for (service, directive) in cluster.services.iter().zip(DIRECTIVES) {
            let name = format!("{}.{}.svc.cluster.local.", service.name, cluster.namespace);
            for (index, zone) in ZONES.iter().enumerate() {
                for record_type in [RecordType::A, RecordType::AAAA, RecordType::SRV] {
                    let client = client(index + 1);
                    let zonal = format!("{zone}.{directive}._zone.{name}");
                    let ask = |server, name: &str| {
                        answer(&over_udp(client, server, &usual(name, record_type)), name)
                    };
                    let all = ask(servers.theirs(), &name);
                    let mut theirs = ask(servers.theirs(), &zonal);
                    if all.0 == ResponseCode::NXDomain {
                        // CoreDNS has the zones of a Service that has no ready endpoint, but not its name.
                        assert_eq!(theirs, answer_without_data(), "{zonal}");
                        theirs = all.clone();
                    }
                    for _ in 0..TURNS {
                        let ours = ask(servers.ours(), &name);
                        assert_eq!(theirs, ours, "{record_type} {zonal}");
                    }
                    counts.add(&theirs, &all);
                }
            }
        }
    }
    let Counts {
        whole,
        part,
        no_data,
        no_such_name,
    } = counts;
    assert!(
        [whole, part, no_data, no_such_name]
            .iter()
            .all(|count| *count > 0),
        "{counts:?}"
    );
    counts
}

pub(crate) fn answer(message: &Message, name: &str) -> ZoneAnswer {
    let reply = Reply::of(message);
    let answers = reply.answers.iter();
    let answers = answers.map(|record| record.strip_prefix(name).unwrap().to_owned());
    (reply.code, answers.collect(), reply.additionals)
}

pub(crate) fn answer_without_data() -> ZoneAnswer {
    (ResponseCode::NoError, BTreeSet::new(), BTreeSet::new())
}

impl Counts {
    fn add(&mut self, answer: &ZoneAnswer, all: &ZoneAnswer) {
        let count = match answer {
            (ResponseCode::NXDomain, ..) => &mut self.no_such_name,
            (_, records, _) if records.is_empty() => &mut self.no_data,
            _ if answer == all => &mut self.whole,
            _ => &mut self.part,
        };
        *count += 1;
    }
}
