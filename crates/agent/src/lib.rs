//! The node agent.

pub mod api;
pub mod cli;
pub mod client;
pub mod health;
pub mod log;
pub mod metrics;
pub mod output;
pub mod serve;
pub mod status;
