//! Records on disk: which virtual servers are ours, and when draining real servers are deleted.

pub mod draining;
pub mod journal;
pub mod record;

pub use draining::{Deadlines, Draining};
pub use record::{Claims, Record};
