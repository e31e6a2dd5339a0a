//! The JSON of `render --dns` and `explain --dns`, from which their texts are built.
//!
//! Scripts depend on it: fields are added, never renamed or removed.

use std::net::IpAddr;

use agent_api::view::{ExplainView, WarningView};
use serde::Serialize;

/// `render --dns -o json`: what clients of one node are answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeAnswersView {
    pub node: String,
    /// By namespace and name.
    pub services: Vec<ServiceAnswersView>,
    /// Warnings about the input.
    pub warnings: Vec<WarningView>,
}

/// The answers for the name of a Service, or of one of its ports.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAnswersView {
    /// `namespace/name`.
    pub service: String,
    pub kind: DnsServiceKind,
    pub response_code: DnsResponseCode,
    /// Why the name does not exist, as text.
    pub missing: Option<String>,
    /// The other name, for the name of a Service of type `ExternalName`.
    pub cname: Option<String>,
    /// One for each type of record that the name may have.
    pub answers: Vec<AnswerView>,
}

/// What clients get for the name of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DnsServiceKind {
    /// Addresses of endpoints.
    Headless,
    #[serde(rename = "clusterIP")]
    ClusterIp,
    /// Another name.
    ExternalName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DnsResponseCode {
    #[serde(rename = "NOERROR")]
    NoError,
    /// The name does not exist.
    #[serde(rename = "NXDOMAIN")]
    NxDomain,
}

/// The answers of one record type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerView {
    /// `A`, `AAAA` or `SRV`.
    pub record_type: String,
    /// The name of the Service port, for `SRV`; empty if it has none.
    pub port_name: Option<String>,
    /// The number of answers to a client until they repeat.
    pub cycle: u64,
    /// Each answer is for one of these, nearest first; empty if answers have no data.
    pub levels: Vec<AnswerLevelView>,
    /// Why answers have no data, as text.
    pub refusal: Option<String>,
    /// The same as a code.
    pub refusal_code: Option<String>,
    /// How the endpoints were selected; only from `explain`, and for headless Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<ExplainView>,
}

/// The answers for one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerLevelView {
    /// The notation of annotations; absent without levels.
    pub level: Option<String>,
    /// The part of the answers, 0 to 1.
    pub share: f64,
    /// The number of answers in a cycle.
    pub answers: u64,
    /// The addresses in each of these answers; with ports for `SRV`.
    pub addresses: Vec<String>,
}

/// `explain --dns -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedAnswersView {
    #[serde(flatten)]
    pub service: ServiceAnswersView,
    /// The client; absent if the answer is the same for every client.
    pub client: Option<ClientView>,
    /// Warnings about the objects on which the answers depend.
    pub warnings: Vec<WarningView>,
}

/// A client, and the Node on which it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientView {
    /// Absent for any client of the Node.
    pub address: Option<IpAddr>,
    pub node: String,
    /// The rule of docs/dns.md that found the Node, 1 to 6; absent without an address.
    pub rule: Option<u8>,
    /// The same as text.
    pub words: String,
}
