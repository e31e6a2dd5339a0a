//! Records on disk: our virtual servers, the deadlines of draining real servers, and firewall marks.

pub mod draining;
pub mod journal;
pub mod marks;
pub mod record;

pub use draining::{Deadlines, Draining};
pub use marks::{MarkRecord, SavedMarks};
pub use record::{Claims, OwnershipRecord};
