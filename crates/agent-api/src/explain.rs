//! Explains how the real servers of a Service were chosen and weighted, and what would change it.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

mod explain_input;
mod outcome;
mod sandbox;
mod scheduler;
mod stages;
mod what_if;

pub use self::explain_input::{ExplainInput, nothing};
pub use self::stages::explain;
