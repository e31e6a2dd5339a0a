//! Parses one part of a file into objects, warnings and counts of skipped objects.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufRead;
use std::sync::Arc;

use smallvec::SmallVec;

use super::parts::Part;
use crate::convert::{self, Context, Converted, Outcome};
use crate::object::{Ignored, Object, ObjectKey};
use crate::warning::Warning;
use object_tree::{self as yaml, SyntaxError};

/// The content of one part of a file. Lines are counted within the part, from 1.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    pub(crate) part: Part,
    /// The number of values that its aliases expand to.
    pub(crate) aliased: u64,
    /// The objects of kinds that are read, in the order of the text; nearly always one.
    pub(crate) claims: SmallVec<[Claim; 1]>,
    /// Milliseconds since 1970 when an object that is too early becomes valid: the part is read
    /// again then.
    pub(crate) usable_at: Option<i64>,
    /// Empty in most chunks.
    pub(crate) rest: Option<Arc<Rest>>,
}

/// The content of a chunk besides objects of kinds that are read.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// In the order of the text.
    pub(crate) warnings: Vec<Warning>,
    /// The number of objects of kinds that are not read, by kind.
    pub(crate) skipped: BTreeMap<Arc<str>, usize>,
    /// The number of objects without a usable kind or name.
    pub(crate) unknown: usize,
}

/// One object that a file defines, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) key: ObjectKey,
    pub(crate) line: u32,
    pub(crate) state: ObjectState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectState {
    /// Valid, with a fingerprint of its content.
    Good(u64),
    /// Valid, but not used by this program.
    Ignored(Ignored),
    Invalid,
}

/// A valid object in a file.
#[derive(Debug)]
pub(crate) struct ParsedObject {
    pub(crate) key: ObjectKey,
    /// Counted in the file, from 1.
    pub(crate) line: u32,
    pub(crate) fingerprint: u64,
    pub(crate) object: Object,
}

/// Parses one part. Passes the valid objects to `take`, in the order of the text, and returns the
/// claims of all objects.
///
/// `first_line` is the part's first line in the file, for warnings and for `take`.
pub(crate) fn parse(
    reader: impl BufRead,
    part: Part,
    first_line: u32,
    file: &Arc<str>,
    context: &mut Context,
    take: &mut dyn FnMut(ParsedObject),
) -> Result<Chunk, Warning> {
    let mut claims = SmallVec::new();
    let mut rest = Rest::default();
    let mut earliest = None;
    let before = context.aliases.left;
    let mut left = before;
    let result = yaml::read_within(&mut left, reader, |node| {
        let Converted {
            line,
            outcome,
            usable_at,
            warnings,
        } = convert::object(&node, file, context);
        rest.warnings.extend(warnings);
        earliest = earliest.into_iter().chain(usable_at).min();
        let (key, state) = match outcome {
            Outcome::Object(object) => {
                let key = object.key();
                let fingerprint = fingerprint(&object);
                let line = line.saturating_add(first_line).saturating_sub(1);
                take(ParsedObject {
                    key: key.clone(),
                    line,
                    fingerprint,
                    object,
                });
                (key, ObjectState::Good(fingerprint))
            }
            Outcome::Ignored(key, reason) => (key, ObjectState::Ignored(reason)),
            Outcome::Invalid(key) => (key, ObjectState::Invalid),
            Outcome::OtherKind(kind) => {
                *rest
                    .skipped
                    .entry(context.interner.text(&kind))
                    .or_default() += 1;
                return;
            }
            Outcome::Unknown => {
                rest.unknown += 1;
                return;
            }
        };
        claims.push(Claim { key, line, state });
    });
    context.aliases.left = left;
    result.map_err(|error| refused(&error, file, first_line))?;
    claims.shrink_to_fit();
    let Rest {
        warnings,
        skipped,
        unknown,
    } = &rest;
    let empty = warnings.is_empty() && skipped.is_empty() && *unknown == 0;
    Ok(Chunk {
        part,
        aliased: before.saturating_sub(left),
        claims,
        usable_at: earliest,
        rest: (!empty).then(|| Arc::new(rest)),
    })
}

/// A hash of an object. Labels and fields that are not read do not change it.
pub(crate) fn fingerprint(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}

/// The warning for a file that is refused as a whole.
pub(crate) fn refused(error: &SyntaxError, file: &Arc<str>, first_line: u32) -> Warning {
    let at = |line: u32| line.saturating_add(first_line).saturating_sub(1);
    match error {
        SyntaxError::Io(message) => unreadable(file, message),
        SyntaxError::Broken { line, message } => {
            let message = format!("not valid YAML: {message}; nothing new in the file is used");
            Warning::of_file(file, at(*line), message, "correct it here or just above")
        }
        SyntaxError::TooMuch { line, message } => {
            let message = format!("refused: {message}; nothing new in the file is used");
            Warning::of_file(
                file,
                at(*line),
                message,
                "write objects as `kubectl get -o yaml` does",
            )
        }
    }
}

/// The warning for a file that cannot be read.
pub(crate) fn unreadable(file: &Arc<str>, message: &str) -> Warning {
    Warning::of_file(
        file,
        0,
        format!("cannot be read: {message}; nothing new in the file is used"),
        "check the file and its permissions",
    )
}
