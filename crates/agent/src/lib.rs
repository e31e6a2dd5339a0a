//! The node agent.

pub mod agent_status;
pub mod api;
pub mod cli;
pub mod diff;
pub mod explain;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod health;
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

mod agent_config;
mod inputs;
mod reconcile;
mod runtime;
mod server_header;
mod services;
