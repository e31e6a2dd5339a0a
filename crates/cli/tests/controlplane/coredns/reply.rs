//! What a reply says, in a form that can be compared and predicted.

use std::collections::BTreeSet;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, Record};

/// The content of a reply, without the order of records, the case of names and the serial number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) code: ResponseCode,
    pub(crate) is_authoritative: bool,
    pub(crate) answers: BTreeSet<String>,
    pub(crate) authorities: BTreeSet<String>,
    pub(crate) additionals: BTreeSet<String>,
}

/// The start of authority in negative answers.
pub(crate) const SOA: &str =
    "cluster.local. 5 SOA ns.dns.cluster.local. hostmaster.cluster.local. - 7200 1800 86400 5";

impl Reply {
    pub(crate) fn of(message: &Message) -> Self {
        let texts = |records: &[Record]| {
            let texts: BTreeSet<String> = records.iter().map(text).collect();
            assert_eq!(
                texts.len(),
                records.len(),
                "a record is twice in {records:?}"
            );
            texts
        };
        Self {
            code: message.metadata.response_code,
            is_authoritative: message.metadata.authoritative,
            answers: texts(&message.answers),
            authorities: texts(&message.authorities),
            additionals: texts(&message.additionals),
        }
    }

    pub(crate) fn with(answers: BTreeSet<String>, additionals: BTreeSet<String>) -> Self {
        if answers.is_empty() {
            return Self::no_data();
        }
        Self {
            answers,
            additionals,
            authorities: BTreeSet::new(),
            ..Self::no_data()
        }
    }

    pub(crate) fn no_data() -> Self {
        Self {
            code: ResponseCode::NoError,
            is_authoritative: true,
            answers: BTreeSet::new(),
            authorities: [SOA.to_owned()].into(),
            additionals: BTreeSet::new(),
        }
    }

    pub(crate) fn no_such_name() -> Self {
        Self {
            code: ResponseCode::NXDomain,
            ..Self::no_data()
        }
    }

    pub(crate) fn forwarded(code: ResponseCode, answers: BTreeSet<String>) -> Self {
        Self {
            code,
            is_authoritative: false,
            answers,
            authorities: BTreeSet::new(),
            additionals: BTreeSet::new(),
        }
    }
}

/// The weights of SRV records are compared by [`weights`].
fn text(record: &Record) -> String {
    let data = match &record.data {
        RData::SRV(srv) => format!("{} - {} {}", srv.priority, srv.port, srv.target),
        RData::SOA(soa) => format!(
            "{} {} - {} {} {} {}",
            soa.mname, soa.rname, soa.refresh, soa.retry, soa.expire, soa.minimum
        ),
        RData::TXT(txt) => txt
            .txt_data
            .iter()
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect(),
        other => other.to_string(),
    };
    let (name, ttl, record_type) = (&record.name, record.ttl, record.record_type());
    let [name, data] = [name.to_ascii(), data].map(|part| part.to_lowercase());
    format!("{name} {ttl} {record_type} {data}")
}

/// The weights of the SRV records in the answer.
pub(crate) fn weights(message: &Message) -> BTreeSet<u16> {
    let weights = message
        .answers
        .iter()
        .filter_map(|record| match &record.data {
            RData::SRV(srv) => Some(srv.weight),
            _ => None,
        });
    weights.collect()
}
