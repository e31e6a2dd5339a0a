//! Records on disk: our virtual servers, and the deadlines of draining real servers.

pub mod draining;
pub mod journal;
pub mod record;

pub use draining::{Deadlines, Draining};
pub use record::{Claims, OwnershipRecord};
