//! A pipelined netlink engine for any netlink protocol.
//!
//! ```text
//!   Source ──► Pipeline ──► datagrams ──► ┌────────────┐
//!   (messages)   ▲  │ outcomes            │ Connection │ ◄──► kernel
//!                │  ▼                     │ (or async) │
//!   Dump ◄───────┴── answers ◄─────────── └────────────┘
//! ```
//!
//! [`Pipeline`], [`Dump`] and [`Transaction`] are [`Conversation`]s: state machines that are handed bytes and hand out bytes. They do
//! no I/O. [`Connection`] and, with the feature `tokio`, [`AsyncConnection`] move the bytes.
//!
//! What the pipeline relies on, all of it in `net/netlink/af_netlink.c`:
//!
//! - The kernel works through a datagram message by message and goes on after one that failed (`netlink_rcv_skb`).
//! - A message that fails is answered with its own sequence number even if no acknowledgement was asked for.
//!   So asking for one on a datagram's last message is enough to know the outcome of all.
//! - Answers arrive in the order in which they were made. When one does not fit into the receive buffer, it and all
//!   after it are dropped and the next read fails with `ENOBUFS`; so no success is ever concluded from a lost failure.
//!
//! Of the protocols above netlink it knows generic netlink's header and family lookup ([`generic`]); everything else is
//! the caller's: [`attribute_table!`] describes attributes for reading, [`Writer`] writes them, and the payloads of the
//! `netlink-packet-*` crates go into a [`Batch`].

/// The examples of the README, so that they keep compiling.
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
pub use error::{Error, Failure, Nack, Outcome};
pub use message::{Message, Messages};
pub use options::{Limits, NetlinkProtocol, Options};
pub use pipeline::Pipeline;
pub use socket::Socket;
pub use source::{Batch, Source, datagrams};
pub use transaction::Transaction;
pub use unknown::{UnknownAttribute, UnknownAttributes};
pub use value::{Counter, NetworkU16, Raw, Value, require};
pub use writer::Writer;
