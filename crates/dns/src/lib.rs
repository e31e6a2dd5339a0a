//! Answers DNS queries for the names of a cluster: from a snapshot, a question and the address of
//! the client to records. The endpoints are those that a virtual server on the client's node would
//! have.
//!
//! ```text
//!  question ──> cluster_name ──────────────────┐
//!  client ────> client_place ──> its Node      ├──> responder ──> DnsAnswer
//!  Snapshot ──> decisions: HeadlessService ────┤
//!               turns: how often it has asked ─┘
//! ```
//!
//! The names are those of the Kubernetes DNS specification 1.1.0.
//!
//! # What an answer holds
//!
//! An answer for a headless Service holds the endpoints of *one* level of the decision, such as the
//! client's zone. The turns of a client visit each endpoint as often as its weight says, and the
//! level of that endpoint is the one that is answered, with that endpoint first. So the share of a
//! level is right for clients that use the addresses in any way, and the share of each endpoint for
//! clients that use the first. Without a policy there is one level: the answer holds every endpoint.
//!
//! [`AnswerCycle`] is the same for explanations: the levels of a decision, and how many answers each has.
//!
//! # What it does not do
//!
//! No sockets, no clock, no logging, no Kubernetes client. The caller passes the time.

#![allow(missing_docs, reason = "only crates of this workspace use it")]

mod answer;
mod answer_cycle;
mod client_place;
mod cluster_name;
mod decisions;
mod family_endpoints;
mod find;
mod name_servers;
mod placement_rule;
mod port_name;
mod ports;
mod published;
mod question;
mod responder;
mod turns;
mod weighted_endpoints;

pub use answer::DnsAnswer;
pub use answer_cycle::{AnswerCycle, AnswerLevel};
pub use client_place::ClientPlace;
pub use decisions::viewpoint;
pub use find::{has_name, has_port_name, is_alias};
pub use placement_rule::PlacementRule;
pub use question::{DnsQuestion, DnsTransport};
pub use responder::{Responder, ResponderOptions};
pub use turns::Turn;
