//! Records on disk: our virtual servers, the deadlines of draining real servers, firewall marks, and changed settings.

mod checked_record;
pub mod draining;
pub mod journal;
pub mod marks;
pub mod record;
pub mod settings;

pub use draining::{Deadlines, Draining};
pub use marks::{MarkRecord, SavedMarks};
pub use record::{Claims, OwnershipRecord};
pub use settings::{SavedSettings, SettingChange, SettingsRecord};
