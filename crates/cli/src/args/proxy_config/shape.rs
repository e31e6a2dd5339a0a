//! The shape of the file: where kube-proxy has a list, a map or a value. It does not start with
//! another of them, but only reports a field that it does not know.

use super::setting::ProxySetting;
use super::settings;
use super::value::GivenValue;

/// A part of a path, such as `logging.vmodule[0].filePattern`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    /// A key of a map; `*` in the table stands for any.
    Key(&'a str),
    /// An item of a list.
    Item,
}

/// Checks a field without a setting.
///
/// # Errors
/// kube-proxy has another shape somewhere on its path; the message shows it.
pub(super) fn check(given: &GivenValue) -> Result<(), String> {
    let found = parts(&given.field);
    let mut wrong = settings::all().filter_map(|setting| mismatch(setting, &found, &given.text));
    wrong.next().map_or(Ok(()), Err)
}

fn mismatch(setting: &ProxySetting, found: &[Part<'_>], text: &str) -> Option<String> {
    let known = parts(setting.field);
    let pairs = known.iter().zip(found);
    let same = pairs.take_while(|(known, found)| is_same(**known, **found));
    let same = same.count();
    let shape = match (known.get(same), found.get(same)) {
        (None, None) | (Some(Part::Key(_)), Some(Part::Key(_))) => return None,
        (None, Some(_)) => setting.values.described(),
        (Some(Part::Item), _) => "a list, such as [a, b]".to_owned(),
        (Some(Part::Key("*")), _) => {
            format!("a map with {} for each name", setting.values.described())
        }
        (Some(Part::Key(key)), _) => format!("a map with fields such as {key}"),
    };
    let other = match found.get(same) {
        None => format!("{text:?}"),
        Some(Part::Item) => "a list".to_owned(),
        Some(Part::Key(_)) => "a map".to_owned(),
    };
    let path = path(found.get(..same).unwrap_or(found));
    Some(format!("{path} must be {shape}, not {other}"))
}

fn is_same(known: Part<'_>, found: Part<'_>) -> bool {
    known == found || known == Part::Key("*") && found != Part::Item
}

fn parts(field: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for name in field.split('.') {
        let mut pieces = name.split('[');
        parts.extend(pieces.next().map(Part::Key));
        parts.extend(pieces.map(|_index| Part::Item));
    }
    parts
}

fn path(parts: &[Part<'_>]) -> String {
    let mut path = String::new();
    for part in parts {
        match part {
            Part::Item => path.push_str("[]"),
            Part::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
        }
    }
    path
}
