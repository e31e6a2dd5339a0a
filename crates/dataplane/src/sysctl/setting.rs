//! A sysctl with its desired value.

use std::fs;
use std::path::Path;

/// A sysctl and the consequence of another value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Path below `/proc/sys`.
    pub(super) file: &'static str,
    pub(super) value: DesiredValue,
    /// The consequence of another value.
    pub(super) without: &'static str,
}

/// The desired value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DesiredValue {
    Exactly(u64),
    /// A larger one may stay.
    AtLeast(u64),
}

impl DesiredValue {
    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Exactly(number) | Self::AtLeast(number) => number,
        }
    }

    /// Whether the value of a file is as desired.
    pub(super) fn accepts(self, text: &str) -> bool {
        let held: Option<u64> = text.parse().ok();
        held.is_some_and(|held| match self {
            Self::Exactly(number) => held == number,
            Self::AtLeast(number) => held >= number,
        })
    }
}

/// Reads a number below `root`; `None` if there is none.
pub(super) fn read_number(root: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join(file)).ok()?;
    text.trim().parse().ok()
}
