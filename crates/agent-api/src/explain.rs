//! Explains how the real servers of a Service were chosen and weighted, and what would change it.

// A source, reason, note or fact that is added must be thought of everywhere, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

mod explain_input;
mod outcome;
mod sandbox;
mod scheduler;
mod stages;
mod what_if;

pub use self::explain_input::{ExplainInput, nothing};
pub use self::stages::explain;
