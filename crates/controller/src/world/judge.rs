//! Whether an object can be used: judged by the reader that agents use, so that both always agree.

use cluster::source::{Loaded, Options, read_text};
use serde_json::Value;

/// The object as agents read it.
pub(super) fn read(object: &Value, now: Option<i64>) -> Option<Loaded> {
    let options = Options {
        now,
        ..Options::default()
    };
    read_text("object", object.to_string().as_bytes(), &options).ok()
}

/// What is wrong with it, if it is not used for that; in words.
pub(super) fn fault(loaded: Option<&Loaded>, is_used: impl Fn(&Loaded) -> bool) -> Option<String> {
    match loaded {
        Some(loaded) if is_used(loaded) => None,
        Some(loaded) => {
            let first = loaded.warnings.first();
            Some(first.map_or_else(
                || "it is not used".to_owned(),
                |warning| format!("{}; {}", warning.message, warning.remedy),
            ))
        }
        None => Some("it cannot be read".to_owned()),
    }
}
