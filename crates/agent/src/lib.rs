//! The node agent.

pub mod api;
pub mod cli;
pub mod client;
pub mod diff;
pub mod explain;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod health;
mod lock;
pub mod log;
pub mod metrics;
pub mod offline;
pub mod origin;
pub mod output;
pub mod render;
pub mod report;
pub mod run;
pub mod serve;
pub mod simulate;
pub mod start;
pub mod state;
pub mod status;
pub mod trouble;

mod conntrack;
mod draining;
mod fuse;
mod guard;
mod hash;
mod host;
mod inputs;
mod journal;
mod kernel;
mod link;
mod other_proxy;
mod ownership;
mod preflight;
mod reconcile;
mod routes;
mod rtnl;
mod services;
mod sysctl;
