//! Answers questions, and follows the changes of a snapshot.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, Record, RecordType};
use topology_core::address_index::AddressIndex;
use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::answer::{DnsAnswer, RecordBuilder};
use crate::client_place::ClientPlace;
use crate::decisions::{AskedService, Decisions};
use crate::question::DnsQuestion;
use crate::turns::{Turn, Turns};

/// The most aliases that one answer follows: Services of type `ExternalName` may name each other.
const MOST_ALIASES: usize = 8;

/// The turns of this many clients, names, types and ports are counted at a time.
const MOST_TURNS: usize = 100_000;

/// The settings of a [`Responder`].
#[derive(Debug, Clone)]
pub struct ResponderOptions {
    /// The domain of the cluster, such as `cluster.local.`.
    pub domain: Name,
    /// The seconds for which clients may keep an answer.
    pub ttl: u32,
    /// The Node on which the server runs. It has its own clients, and those whose address says nothing.
    pub node: Arc<str>,
    /// The server as an endpoint of Services: each of its addresses, with its port.
    pub endpoints: Vec<SocketAddr>,
}

/// Answers questions about one snapshot.
#[derive(Debug)]
pub struct Responder {
    pub(crate) records: RecordBuilder,
    own_node: Arc<str>,
    pub(crate) endpoints: Vec<SocketAddr>,
    pub(crate) addresses: AddressIndex,
    pub(crate) decisions: Decisions,
    pub(crate) turns: Turns,
    /// Counts the changes.
    pub(crate) serial: u32,
}

/// A question of a client, and the cluster that it is about.
#[derive(Debug, Clone)]
pub(crate) struct ClientQuestion<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(crate) asked: DnsQuestion<'s>,
    /// The name that was asked for, or the one to which its aliases lead.
    pub(crate) name: Name,
    /// The client's Node.
    pub(crate) node: Arc<str>,
}

impl ClientQuestion<'_> {
    /// The Service that the question is about, and who asks.
    pub(crate) fn about<'a>(&'a self, name: &'a ObjectName) -> AskedService<'a> {
        AskedService {
            snapshot: self.snapshot,
            name,
            node: &self.node,
            now: self.asked.now,
        }
    }
}

/// What a name has of the type in question.
#[derive(Debug)]
pub(crate) enum NameLookup {
    /// The name exists, and has these records of the type, and these of the names in them.
    Records(Vec<Record>, Vec<Record>),
    /// The same, and the name may have more records than were looked for.
    Partial(Vec<Record>, Vec<Record>),
    /// The name is another name for this one.
    Alias(Name),
    NoSuchName,
}

impl NameLookup {
    pub(crate) const NO_RECORDS: Self = Self::Records(Vec::new(), Vec::new());

    /// A name without records of its own, if it exists.
    pub(crate) fn branch(exists: bool) -> Self {
        if exists {
            Self::NO_RECORDS
        } else {
            Self::NoSuchName
        }
    }
}

impl Responder {
    pub fn new(options: ResponderOptions) -> Self {
        let ResponderOptions {
            domain,
            ttl,
            node,
            endpoints,
        } = options;
        Self {
            records: RecordBuilder { domain, ttl },
            own_node: node,
            endpoints,
            addresses: AddressIndex::default(),
            decisions: Decisions::default(),
            turns: Turns::new(MOST_TURNS),
            serial: 1,
        }
    }

    /// Takes the changes of the snapshot. Call it after each change, before the next answer.
    pub fn update(&mut self, snapshot: &mut Snapshot) {
        let changes = snapshot.take_changes();
        for service in &changes.services {
            self.addresses.update(snapshot, service);
            self.decisions.forget(snapshot, service);
        }
        if changes.nodes {
            self.decisions.forget_all();
        }
        if changes.nodes || !changes.services.is_empty() {
            self.serial = self.serial.wrapping_add(1);
        }
    }

    /// The answer to a question; `None` if the name is neither in the domain nor of an address of the cluster.
    pub fn answer(&mut self, snapshot: &Snapshot, asked: DnsQuestion<'_>) -> Option<DnsAnswer> {
        let mut question = ClientQuestion {
            snapshot,
            asked,
            name: asked.name.clone(),
            node: self.node_of(snapshot, asked.client),
        };
        let mut answer = DnsAnswer::of(Vec::new());
        for _ in 0..MOST_ALIASES {
            let found = self.find(&question)?;
            answer.is_partial = matches!(found, NameLookup::Partial(..));
            let target = match found {
                NameLookup::Records(records, additionals)
                | NameLookup::Partial(records, additionals) => {
                    answer.soa = self.soa_if(records.is_empty());
                    answer.records.extend(records);
                    answer.additionals = additionals;
                    break;
                }
                NameLookup::NoSuchName => {
                    answer.soa = self.soa_if(true);
                    answer.code = ResponseCode::NXDomain;
                    break;
                }
                NameLookup::Alias(target) => target,
            };
            let alias = self.records.alias(&question.name, target.clone());
            answer.records.push(alias);
            let is_circle = answer.records.iter().any(|record| record.name == target);
            if asked.record_type == RecordType::CNAME || is_circle {
                break;
            }
            if !self.records.domain.zone_of(&target) {
                answer.alias = Some(target);
                break;
            }
            question.name = target;
        }
        answer.turn = self.turns.take_last();
        Some(answer)
    }

    /// The reply with this turn over UDP was truncated. The client asks again over TCP, and then gets the same turn.
    pub fn truncated(&mut self, turn: &Turn) {
        self.turns.repeat(turn);
    }

    fn soa_if(&self, is_negative: bool) -> Option<Record> {
        is_negative.then(|| self.records.soa(self.serial))
    }

    /// The Node of a client.
    pub fn node_of(&self, snapshot: &Snapshot, client: IpAddr) -> Arc<str> {
        ClientPlace::find(snapshot, &self.addresses, &self.own_node, client).node
    }
}
