//! The plan for one object.

use crate::state::write::Write;

/// What to do about an object.
pub(super) enum Planned {
    /// It is as desired.
    Nothing,
    Wait,
    Write(Write),
}

impl Planned {
    pub(super) fn of(must_wait: bool, write: impl FnOnce() -> Option<Write>) -> Self {
        if must_wait {
            return Self::Wait;
        }
        write().map_or(Self::Nothing, Self::Write)
    }
}
