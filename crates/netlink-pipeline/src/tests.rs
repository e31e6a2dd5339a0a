//! Tests the state machines against a simulated kernel without sockets.

mod acks;
mod datagrams;
mod dumps;
mod kernel;
mod pipelines;
mod transactions;
