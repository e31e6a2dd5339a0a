//! A pipelined netlink engine for any netlink protocol.
//!
//! ```text
//!   Source ──► Pipeline ──► datagrams ──► ┌────────────┐
//!   (messages)   ▲  │ outcomes            │ Connection │ ◄──► kernel
//!                │  ▼                     │ (or async) │
//!   Dump ◄───────┴── answers ◄─────────── └────────────┘
//! ```
//!
//! [`Pipeline`], [`Dump`] and [`Transaction`] are [`Conversation`]s: state machines without I/O. [`Connection`] and,
//! with the feature `tokio`, [`AsyncConnection`] send and receive for them.
//!
//! The pipeline relies on this behaviour of `net/netlink/af_netlink.c`:
//!
//! - The kernel processes the messages of a datagram in order and continues after one that failed (`netlink_rcv_skb`).
//! - A message that fails is answered with its own sequence number even without `NLM_F_ACK`. So one acknowledgement, of
//!   the last message of a datagram, is enough to learn the result of all.
//! - Replies arrive in order. If one does not fit into the receive buffer, the kernel drops it and all replies after
//!   it, and the next read fails with `ENOBUFS`. So a lost failure is never taken for a success.
//!
//! Of the protocols above netlink it implements generic netlink's header and family lookup ([`generic`]). The rest is
//! up to the caller: [`attribute_table!`] describes attributes for reading, [`Writer`] writes them, and payloads of the
//! `netlink-packet-*` crates go into a [`Batch`].

/// The examples of the README, compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[macro_use]
mod table;

mod ack;
#[cfg(feature = "tokio")]
mod asynchronous;
mod attribute;
mod blocking;
mod conversation;
mod datagram;
mod decode_error;
mod dump;
mod error;
mod exchange;
pub mod generic;
mod message;
mod options;
mod pipeline;
mod socket;
mod source;
#[cfg(test)]
mod tests;
mod transaction;
mod unknown;
mod value;
mod writer;

#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncConnection, AsyncSubscription};
pub use attribute::{Attribute, Attributes};
pub use blocking::{Connection, Subscription};
pub use conversation::{Conversation, Next, Sequence};
pub use datagram::{Answer, Datagram, Request, Unsendable};
pub use decode_error::DecodeError;
pub use dump::Dump;
pub use error::{Error, Nack, RequestError, RequestResult};
pub use message::{Message, Messages};
pub use options::{Limits, NetlinkProtocol, Options};
pub use pipeline::Pipeline;
pub use socket::Socket;
pub use source::{Batch, Source, datagrams};
pub use transaction::Transaction;
pub use unknown::{UnknownAttribute, UnknownAttributes};
pub use value::{AttributeValue, Counter, NetworkU16, NetworkU32, NetworkU64, Raw, require};
pub use writer::Writer;
