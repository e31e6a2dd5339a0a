//! Completes a mapping: applies `<<` and refuses repeated keys.
//!
//! A user may choose the keys, so the hash has a random seed.

use std::collections::HashSet;

use super::node::{Node, Text};
use super::syntax_error::SyntaxError;

/// Applies `<<` (own keys win, earlier merges win) and refuses repeated keys.
pub(super) fn finish(
    mut entries: Vec<(Text, Node)>,
    merges: &[Node],
    line: u32,
) -> Result<Vec<(Text, Node)>, SyntaxError> {
    if let Some((key, node)) = repeated(&entries) {
        let message = format!("the key `{key}` is written twice in one mapping");
        return Err(SyntaxError::Broken {
            line: node.line,
            message,
        });
    }
    // One set for all sources: `<<` may name thousands in a mapping with many keys.
    let mut own: HashSet<Text> = HashSet::new();
    if !merges.is_empty() {
        own.extend(entries.iter().map(|(key, _)| key.clone()));
    }
    for merge in merges {
        let sources = merge.list().unwrap_or(std::slice::from_ref(merge));
        for source in sources {
            let more = source.map().ok_or_else(|| SyntaxError::Broken {
                line,
                message: "`<<` takes a mapping or a list of mappings".to_owned(),
            })?;
            let new = more.iter().filter(|(key, _)| own.insert(key.clone()));
            entries.extend(new.cloned());
        }
    }
    entries.shrink_to_fit();
    Ok(entries)
}

fn repeated(entries: &[(Text, Node)]) -> Option<&(Text, Node)> {
    if entries.len() <= 16 {
        return entries.iter().enumerate().find_map(|(index, entry)| {
            entries
                .iter()
                .take(index)
                .any(|(key, _)| *key == entry.0)
                .then_some(entry)
        });
    }
    let mut seen = HashSet::new();
    entries.iter().find(|(key, _)| !seen.insert(key))
}
