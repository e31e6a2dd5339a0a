//! Tests the state machines against a simulated kernel without sockets, and the tokio connection against the real one.

mod acks;
#[cfg(feature = "tokio")]
mod asynchronous;
mod datagrams;
mod dumps;
mod kernel;
mod pipelines;
mod transactions;
