//! Prints to standard output and error. Handles colours, and a closed pipe is not an error.

use std::io::{self, Write as _};

use agent_api::view::WarningView;
use anstream::ColorChoice;
use clap::ValueEnum;
use cluster::text::{self, OneLine};

use crate::exit::Failure;

/// When output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Even into a pipe or file.
    Always,
    /// Not even on a terminal.
    Never,
}

/// Sets colours for the whole process.
pub fn choose(colour: Colour) {
    let choice = match colour {
        Colour::Auto => ColorChoice::Auto,
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Prints a result. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// Standard output cannot be written, for example because the disk is full.
pub fn result(text: &str) -> Result<(), Failure> {
    update(text).map(|_has_reader| ())
}

/// Prints one of several results. Returns whether standard output still has a reader.
///
/// # Errors
/// As [`result`].
pub fn update(text: &str) -> Result<bool, Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::trouble(format_args!(
            "standard output cannot be written: {error}"
        ))),
    }
}

/// Prints a message on one line.
pub fn aside(line: &str) {
    // If standard error is closed, there is no way to report that.
    let _written = writeln!(
        anstream::stderr().lock(),
        "{}",
        OneLine(&text::shorten(line))
    );
}

/// Prints warnings about the input, each on one line.
pub fn warnings(warnings: &[WarningView]) {
    for warning in warnings {
        aside(&format!("warning: {}", warning.text));
    }
}

/// Columns of the terminal on standard output; `COLUMNS` overrides it; `None` without a terminal.
/// 0 means unknown in both.
pub fn width() -> Option<usize> {
    let wanted = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|columns: &usize| *columns > 0);
    wanted.or_else(|| {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    })
}

/// `view` as indented JSON with a final newline, without characters that control a terminal.
///
/// # Errors
/// Never for the views of this crate; a map with keys that are no strings would fail.
pub fn json<T: serde::Serialize>(view: &T) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(view).map_err(|error| {
        Failure::trouble(format_args!(
            "the result cannot be written as JSON: {error}"
        ))
    })?;
    Ok(text::safe_json(&text).into_owned() + "\n")
}
