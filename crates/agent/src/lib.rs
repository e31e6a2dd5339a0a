//! The node agent.

pub mod api;
pub mod cli;
pub mod client;
pub mod explain;
pub mod health;
pub mod log;
pub mod metrics;
pub mod offline;
pub mod output;
pub mod render;
pub mod serve;
pub mod status;
