//! Reads one file, and parses only the parts that changed.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::object_warnings::repeated;
use super::parse::{self, Chunk, Claim, ObjectState, ParsedObject};
use super::parts::{self, Part};
use crate::convert::Context;
use crate::object::ObjectKey;
use crate::warning::Warning;

/// The size of the read buffer in bytes.
const BUFFER: usize = 64 * 1024;

/// The parsed content of one file.
#[derive(Debug, Default, Clone)]
pub(crate) struct Text {
    chunks: Box<[Chunk]>,
}

/// Reads a file and passes its valid objects to `take`, in the order of the text.
///
/// Takes the unchanged parts from `known`, and does not pass their objects again. Parses a part
/// again if one of its objects was too early.
pub(crate) fn read(
    file: &Arc<str>,
    source: impl Read + Seek,
    known: &Text,
    context: &mut Context,
    take: &mut dyn FnMut(ParsedObject),
) -> Result<Text, Warning> {
    context.aliases.begin(file);
    let before = context.aliases.left;
    let text = read_parts(file, source, known, context, take);
    let aliased = before.saturating_sub(context.aliases.left);
    context.aliases.end(file, aliased);
    text
}

fn read_parts(
    file: &Arc<str>,
    source: impl Read + Seek,
    known: &Text,
    context: &mut Context,
    take: &mut dyn FnMut(ParsedObject),
) -> Result<Text, Warning> {
    let unreadable = |error: std::io::Error| parse::unreadable(file, &error.to_string());
    let known = known
        .chunks
        .iter()
        .filter(|chunk| chunk.usable_at.is_none());
    let known = known.map(|chunk| (chunk.part, chunk));
    let known: FxHashMap<Part, &Chunk> = known.collect();
    let mut reader = BufReader::with_capacity(BUFFER, source);
    let parts = parts::cut(&mut reader).map_err(unreadable)?;
    reader.rewind().map_err(unreadable)?;
    let mut chunks = Vec::with_capacity(parts.len());
    let mut first_line = 1_u32;
    for part in parts {
        if let Some(chunk) = known.get(&part) {
            let length = i64::try_from(part.length).unwrap_or(i64::MAX);
            reader.seek_relative(length).map_err(unreadable)?;
            context.aliases.spend(chunk.aliased);
            chunks.push((*chunk).clone());
        } else {
            let mut text = reader.by_ref().take(part.length);
            let chunk = parse::parse(&mut text, part, first_line, file, context, take)?;
            std::io::copy(&mut text, &mut std::io::sink()).map_err(unreadable)?;
            chunks.push(chunk);
        }
        first_line = first_line.saturating_add(part.lines);
    }
    Ok(Text {
        chunks: chunks.into(),
    })
}

impl Text {
    /// Milliseconds since 1970 when the first object that is too early becomes valid.
    pub(crate) fn usable_at(&self) -> Option<i64> {
        self.chunks.iter().filter_map(|chunk| chunk.usable_at).min()
    }

    /// Every object that the file defines, with its line in the file, in the order of the text. If
    /// an object is defined twice, the last definition, as with `kubectl apply`.
    pub(crate) fn last_claims(&self) -> impl Iterator<Item = Claim> + '_ {
        let last = self.last_places();
        let claims = self.claims().enumerate();
        let is_last = move |(at, claim): &(usize, Claim)| last.get(&claim.key) == Some(at);
        claims.filter(is_last).map(|(_, claim)| claim)
    }

    /// The warnings about objects that are defined twice in the file.
    pub(crate) fn repeats(&self, file: &Arc<str>) -> Vec<Warning> {
        let last = self.last_places();
        if last.len() == self.keys().count() {
            return Vec::new();
        }
        let claims: Vec<Claim> = self.claims().collect();
        let earlier = claims.iter().enumerate().filter_map(|(at, claim)| {
            let winner = last.get(&claim.key).filter(|winner| **winner != at)?;
            let place = format!("line {}", claims.get(*winner)?.line);
            Some(repeated(&claim.key, file, claim.line, &place))
        });
        earlier.collect()
    }

    /// The index of the last definition of each object.
    fn last_places(&self) -> FxHashMap<&ObjectKey, usize> {
        self.keys().enumerate().map(|(at, key)| (key, at)).collect()
    }

    /// In the order of the text.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        let claims = self.chunks.iter().flat_map(|chunk| &chunk.claims);
        claims.map(|claim| &claim.key)
    }

    /// The number of definitions of valid objects.
    pub(crate) fn good_claims(&self) -> usize {
        let claims = self.chunks.iter().flat_map(|chunk| &chunk.claims);
        claims
            .filter(|claim| matches!(claim.state, ObjectState::Good(_)))
            .count()
    }

    fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.with_lines().flat_map(|(before, chunk)| {
            chunk.claims.iter().map(move |claim| Claim {
                line: claim.line.saturating_add(before),
                ..claim.clone()
            })
        })
    }

    /// The warnings, with lines counted in the file.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> + '_ {
        self.with_lines().flat_map(|(before, chunk)| {
            let warnings = chunk.rest.iter().flat_map(|rest| &rest.warnings);
            warnings.map(move |warning| Warning {
                line: warning.line.saturating_add(before),
                ..warning.clone()
            })
        })
    }

    /// The number of objects of kinds that are not read, by kind.
    pub(crate) fn skipped(&self) -> BTreeMap<Arc<str>, usize> {
        let mut sum = BTreeMap::new();
        for (kind, count) in self.rests().flat_map(|rest| &rest.skipped) {
            *sum.entry(Arc::clone(kind)).or_default() += count;
        }
        sum
    }

    /// Whether the file has an object without a usable kind or name.
    pub(crate) fn has_unknown(&self) -> bool {
        self.rests().any(|rest| rest.unknown > 0)
    }

    fn rests(&self) -> impl Iterator<Item = &parse::Rest> {
        self.chunks.iter().filter_map(|chunk| chunk.rest.as_deref())
    }

    /// Each chunk with the number of lines before it.
    fn with_lines(&self) -> impl Iterator<Item = (u32, &Chunk)> {
        self.chunks.iter().scan(0_u32, |before, chunk| {
            let here = *before;
            *before = before.saturating_add(chunk.part.lines);
            Some((here, chunk))
        })
    }
}
