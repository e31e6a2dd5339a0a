//! Suggests a level for one that no Node has.

use super::level::{HOSTNAME, REGION, ZONE};

/// Names and labels that users write for a level, with the name here.
const ALIASES: [(&str, &str); 10] = [
    ("az", "zone"),
    ("availability-zone", "zone"),
    ("availabilityzone", "zone"),
    ("failure-domain.beta.kubernetes.io/zone", "zone"),
    ("failure-domain.kubernetes.io/zone", "zone"),
    ("failure-domain.beta.kubernetes.io/region", "region"),
    ("failure-domain.kubernetes.io/region", "region"),
    ("host", "node"),
    ("hostname", "node"),
    ("nodename", "node"),
];

/// Aliases of levels and their labels.
const WORDS: [(&str, &str); 6] = [
    ("node", "node"),
    ("zone", "zone"),
    ("region", "region"),
    (HOSTNAME, "node"),
    (ZONE, "zone"),
    (REGION, "region"),
];

/// Suggests an alias of a level, or one of the labels that Nodes have (`known`), instead of `key`.
///
/// Known other names are tried first, then the most similar text: it may differ in one of three characters, and in at
/// most two. Case is ignored. Of several the first one by name.
pub fn suggest<'a, K: IntoIterator<Item = &'a str>>(key: &str, known: K) -> Option<String> {
    let written = key.to_ascii_lowercase();
    let named = ALIASES.iter().find(|(alias, _)| *alias == written);
    if let Some((_, word)) = named {
        return Some((*word).to_owned());
    }
    let has_word = |label: &str| WORDS.iter().any(|(text, _)| *text == label);
    let known = known
        .into_iter()
        .filter(|label| *label != key && !has_word(label));
    // An alias for `key` itself would be no correction.
    let words = WORDS
        .into_iter()
        .filter(|(_, word)| label_of_alias(word) != key);
    let candidates = words.chain(known.map(|label| (label, label)));
    let most = (key.len() / 3).min(2);
    let near = candidates.filter_map(|(text, meant)| {
        // A longer text is no label key. If the lengths differ much, the texts do, too.
        let far = text.len().abs_diff(key.len()) > most || key.len() > MAX_KEY;
        let distance = (!far).then(|| distance(&written, &text.to_ascii_lowercase()))?;
        (distance <= most).then_some((distance, meant))
    });
    near.min().map(|(_, meant)| meant.to_owned())
}

/// The longest label key: a prefix of 253, a slash, a name of 63.
const MAX_KEY: usize = 317;

/// The label of an alias, for a field without aliases.
pub(crate) fn label_of_alias(word: &str) -> &str {
    match word {
        "node" => HOSTNAME,
        "zone" => ZONE,
        "region" => REGION,
        other => other,
    }
}

/// The number of characters to insert, delete or replace to turn `a` into `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(row.first_mut().unwrap_or(&mut 0), at + 1);
        let mut before = at + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced = diagonal + usize::from(left != right);
            diagonal = *cell;
            before = replaced.min(before + 1).min(*cell + 1);
            *cell = before;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_found_by_name_or_by_similarity() {
        let labels = ["example.com/rack", "topology.kubernetes.io/zone"];
        for (written, meant) in [
            ("Zone", Some("zone")),
            ("az", Some("zone")),
            ("zoen", None),
            ("zones", Some("zone")),
            ("hostname", Some("node")),
            ("host", Some("node")),
            ("failure-domain.beta.kubernetes.io/zone", Some("zone")),
            ("failure-domain.beta.kubernetes.io/region", Some("region")),
            ("topology.kubernetes.io/zon", Some("zone")),
            ("example.com/rak", Some("example.com/rack")),
            ("example.com/Rack", Some("example.com/rack")),
            ("example.com/typo", None),
            ("topology.kubernetes.io/region", None),
        ] {
            assert_eq!(suggest(written, labels).as_deref(), meant, "{written}");
        }
    }

    #[test]
    fn the_distance_counts_changes() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("rack", "rak", 1),
            ("zoen", "zone", 2),
        ] {
            assert_eq!(
                (distance(a, b), distance(b, a)),
                (expected, expected),
                "{a} {b}"
            );
        }
    }
}
