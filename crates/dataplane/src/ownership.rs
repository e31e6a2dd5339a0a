//! Records on disk: our virtual servers, the deadlines of draining real servers, firewall marks, and changed settings.

use std::{fs, io};

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

/// The kernel's boot id (random(4)): every record is of one boot.
///
/// # Errors
/// `/proc` cannot be read.
pub fn boot_id() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(boot.trim().to_owned())
}
