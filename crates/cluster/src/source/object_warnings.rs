//! Words the warnings about an object that is in several places, or cannot be used.

use std::sync::Arc;

use crate::object::ObjectKey;
use crate::warning::Warning;

/// That an object cannot be used as it is now and stays as it was.
pub(crate) fn last_good_stays(file: &Arc<str>, line: u32, key: &ObjectKey) -> Warning {
    let message = "cannot be used as it is now; its last good version stays in use";
    Warning::of_object(file, line, key, message, "see the other warnings about it")
}

/// That the object is written again at `winner`, which counts.
pub(crate) fn repeated(key: &ObjectKey, file: &Arc<str>, line: u32, winner: &str) -> Warning {
    let message = format!("written again at {winner}, which comes later and counts");
    Warning::of_object(file, line, key, message, "remove one of the two")
}
