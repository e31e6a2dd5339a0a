//! The answer to a question, and its records.

use std::net::IpAddr;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{CNAME, NS, PTR, SOA, SRV, TXT};
use hickory_proto::rr::{Name, RData, Record};

use crate::cluster_name::below;
use crate::turns::Turn;

/// The seconds for which secondary servers would wait; there are none.
const REFRESH: i32 = 7_200;
const RETRY: i32 = 1_800;
const EXPIRE: i32 = 86_400;

/// An authoritative answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsAnswer {
    /// `NoError` or `NXDomain`.
    pub code: ResponseCode,
    pub records: Vec<Record>,
    /// Set if the name, or the one to which the records lead, has no records of the type.
    pub soa: Option<Record>,
    /// The addresses of names in the records.
    pub additionals: Vec<Record>,
    /// There may be more records. The reply is truncated even if these fit.
    pub is_partial: bool,
    /// The name, outside of the domain, where the last record leads. Clients that cannot search
    /// themselves need its records, too.
    pub alias: Option<Name>,
    /// Set if the client gets another answer in its next turn.
    pub turn: Option<Turn>,
}

impl DnsAnswer {
    pub(crate) fn of(records: Vec<Record>) -> Self {
        Self {
            code: ResponseCode::NoError,
            records,
            soa: None,
            additionals: Vec::new(),
            is_partial: false,
            alias: None,
            turn: None,
        }
    }
}

/// Makes records with the time to live of the domain.
#[derive(Debug, Clone)]
pub(crate) struct RecordBuilder {
    pub(crate) domain: Name,
    pub(crate) ttl: u32,
}

impl RecordBuilder {
    pub(crate) fn address(&self, name: &Name, address: IpAddr) -> Record {
        let data = match address {
            IpAddr::V4(address) => RData::A(address.into()),
            IpAddr::V6(address) => RData::AAAA(address.into()),
        };
        self.record(name, data)
    }

    pub(crate) fn alias(&self, name: &Name, target: Name) -> Record {
        self.record(name, RData::CNAME(CNAME(target)))
    }

    pub(crate) fn name_server(&self, name: &Name, server: Name) -> Record {
        self.record(name, RData::NS(NS(server)))
    }

    pub(crate) fn pointer(&self, name: &Name, target: Name) -> Record {
        self.record(name, RData::PTR(PTR(target)))
    }

    pub(crate) fn port(&self, name: &Name, weight: u32, port: u16, target: Name) -> Record {
        let weight = u16::try_from(weight).unwrap_or(u16::MAX);
        self.record(name, RData::SRV(SRV::new(0, weight, port, target)))
    }

    pub(crate) fn text(&self, name: &Name, text: &str) -> Record {
        self.record(name, RData::TXT(TXT::new(vec![text.to_owned()])))
    }

    /// The start of authority. The same TTL limits how long clients keep negative answers.
    pub(crate) fn soa(&self, serial: u32) -> Record {
        let (server, mailbox) = (self.server_name(), self.below(&["hostmaster"]));
        let data = SOA::new(server, mailbox, serial, REFRESH, RETRY, EXPIRE, self.ttl);
        self.record(&self.domain, RData::SOA(data))
    }

    /// The name of the server in the start of authority.
    pub(crate) fn server_name(&self) -> Name {
        self.below(&["ns", "dns"])
    }

    /// A name below the domain; the domain itself if it would be too long.
    fn below(&self, labels: &[&str]) -> Name {
        below(labels, &self.domain).unwrap_or_else(|| self.domain.clone())
    }

    fn record(&self, name: &Name, data: RData) -> Record {
        Record::from_rdata(name.clone(), self.ttl, data)
    }
}
