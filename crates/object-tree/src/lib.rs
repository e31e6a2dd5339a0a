//! Reads YAML into trees of fields: one [`Node`] for each object. No other crate uses a YAML
//! parser.
//!
//! The same parser reads JSON, because every JSON text is YAML. The text is a stream, so only one
//! object is in memory, not the file. The items of a top-level `items:` list (`kubectl get -o
//! yaml`) are separate objects, so a list of 20,000 objects needs no more memory than its largest
//! item.
//!
//! Scalars stay text, with a mark if they were not quoted. The meaning of `no` or `0123` is decided
//! where the type is known (see [`Node::text`], [`Node::boolean`]).

mod build;
mod chars;
mod field;
mod list;
mod map;
mod node;
mod syntax_error;
#[cfg(test)]
mod tests;

use std::io::BufRead;

use granit_parser::{ErrorKind, Parser, ScanError};

pub use build::{MAX_ALIASED, MAX_DEPTH};
pub use field::{Field, Problems, Step};
pub use node::{Node, Text, Value, yaml_boolean};
pub use syntax_error::SyntaxError;

use build::Builder;
use chars::Chars;

/// Reads every document of `reader` and passes each object to `sink` in the order of the text.
///
/// Lines are counted from 1. Empty documents are skipped. After an error nothing more is delivered.
/// A caller that cannot use half a text should drop what was delivered before the error.
pub fn read(reader: impl BufRead, sink: impl FnMut(Node)) -> Result<(), SyntaxError> {
    read_within(&mut MAX_ALIASED.clone(), reader, sink)
}

/// Does the same for a part of an input. Its aliases may weigh `budget`, from which their weight is
/// subtracted.
pub fn read_within(
    budget: &mut u64,
    reader: impl BufRead,
    mut sink: impl FnMut(Node),
) -> Result<(), SyntaxError> {
    let mut options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH as usize,
        block_nesting_limit: MAX_DEPTH as usize,
    };
    options.set_emit_comments(false);
    let mut builder = Builder::new(*budget);
    let mut events = Parser::new_from_fallible_iter_with_options(Chars::new(reader), options);
    let result = events.try_for_each(|event| {
        let (event, span) = event.map_err(|error| scan_error(&error))?;
        let line = line_number(span.start.line());
        builder.event(event, line, &mut sink)
    });
    // A refused text uses up the same budget.
    *budget = builder.budget;
    result
}

fn scan_error(error: &ScanError) -> SyntaxError {
    let line = line_number(error.marker().line());
    match error.kind() {
        ErrorKind::InputIo { error } => SyntaxError::Io(error.to_string()),
        ErrorKind::RecursionLimitExceeded => SyntaxError::TooMuch {
            line,
            message: format!("nested more than {MAX_DEPTH} levels deep"),
        },
        _ => SyntaxError::Broken {
            line,
            message: error.info().replace('\n', " "),
        },
    }
}

/// Converts a line of the parser, which also counts from 1.
fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}
