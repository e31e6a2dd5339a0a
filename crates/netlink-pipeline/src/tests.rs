//! The state machines against a small kernel without sockets.

mod acks;
mod datagrams;
mod dumps;
mod kernel;
mod pipelines;
mod transactions;
