//! The shape of the file: where kube-proxy has a list, a map or a value. It does not start with
//! another of them, but only reports a field that it does not know.

use super::setting::ProxySetting;
use super::settings;
use super::value::GivenValue;

/// A part of a path, such as `logging.vmodule[0].filePattern`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldPart<'a> {
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
    let mut wrong = settings::all().filter_map(|setting| mismatch(setting, &found, given));
    wrong.next().map_or(Ok(()), Err)
}

fn mismatch(setting: &ProxySetting, found: &[FieldPart<'_>], given: &GivenValue) -> Option<String> {
    let known = parts(setting.field);
    let pairs = known.iter().zip(found);
    let same = pairs.take_while(|(known, found)| is_same(**known, **found));
    let same = same.count();
    let shape = match (known.get(same), found.get(same)) {
        (None, None) | (Some(FieldPart::Key(_)), Some(FieldPart::Key(_))) => return None,
        // An empty list has no item that could be wrong.
        (Some(_), None) if given.field.ends_with("[]") => return None,
        (None, Some(_)) => setting.values.described(),
        (Some(FieldPart::Item), _) => "a list, such as [a, b]".to_owned(),
        (Some(FieldPart::Key("*")), _) => {
            format!("a map with {} for each name", setting.values.described())
        }
        (Some(FieldPart::Key(key)), _) => format!("a map with fields such as {key}"),
    };
    let other = match found.get(same) {
        None => format!("{:?}", given.text),
        Some(FieldPart::Item) => "a list".to_owned(),
        Some(FieldPart::Key(_)) => "a map".to_owned(),
    };
    let path = path(found.get(..same).unwrap_or(found));
    Some(format!("{path} must be {shape}, not {other}"))
}

fn is_same(known: FieldPart<'_>, found: FieldPart<'_>) -> bool {
    known == found || known == FieldPart::Key("*") && found != FieldPart::Item
}

fn parts(field: &str) -> Vec<FieldPart<'_>> {
    let (field, key) = match field.strip_suffix("{}") {
        Some(field) => (field, Some(FieldPart::Key("{}"))),
        None => (field, None),
    };
    let mut parts = Vec::new();
    for name in field.split('.') {
        let mut pieces = name.split('[');
        parts.extend(pieces.next().map(FieldPart::Key));
        parts.extend(pieces.map(|_index| FieldPart::Item));
    }
    parts.extend(key);
    parts
}

fn path(parts: &[FieldPart<'_>]) -> String {
    let mut path = String::new();
    for part in parts {
        match part {
            FieldPart::Item => path.push_str("[]"),
            FieldPart::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
            }
        }
    }
    path
}
