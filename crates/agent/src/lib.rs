//! The node agent.

pub mod agent_status;
pub mod api;
pub mod cli;
pub mod client;
pub mod diff;
pub mod explain;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod health;
mod lock;
pub mod metrics;
pub mod node_warning;
pub mod offline;
pub mod origin;
pub mod output;
pub mod render;
pub mod run;
pub mod serve;
pub mod simulate;
pub mod start;
pub mod state;
pub mod status;

mod conntrack;
mod crash_point;
mod draining;
mod hash;
mod host;
mod inputs;
mod ipvs;
mod journal;
mod link;
mod nftables;
mod other_proxy;
mod ownership;
mod preflight;
mod reconcile;
mod routes;
mod rtnl;
mod services;
mod sysctl;
