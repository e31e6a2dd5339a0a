//! Makes the warnings about an object that is defined twice, or is no longer valid.

use std::sync::Arc;

use crate::object::ObjectKey;
use crate::warning::Warning;

/// Warns that an object is not valid now, and its last good version stays in use.
pub(crate) fn last_good_stays(file: &Arc<str>, line: u32, key: &ObjectKey) -> Warning {
    let message = "cannot be used as it is now; its last good version stays in use";
    Warning::of_object(file, line, key, message, "see the other warnings about it")
}

/// Warns that the object is defined again at `winner`, and that definition is used.
pub(crate) fn repeated(key: &ObjectKey, file: &Arc<str>, line: u32, winner: &str) -> Warning {
    let message = format!("defined again at {winner}; the later definition is used");
    Warning::of_object(file, line, key, message, "remove one of the two")
}
