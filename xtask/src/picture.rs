//! `cargo xtask picture`: what a terminal shows, as an SVG for the README.
//!
//! Text is read from standard input with its colours, so the picture is the program's real output:
//! `CLICOLOR_FORCE=1 cargo xtask demo | cargo xtask picture --lines 2-10 > docs/demo.svg`.

use std::io::Read as _;
use std::process::ExitCode;
use std::str::FromStr;

use anstyle_svg::Term;
use anyhow::{Context as _, ensure};

/// Options of `cargo xtask picture`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these lines of the input, from 1, such as `3-20`.
    #[arg(long)]
    lines: Option<Lines>,
}

/// A range of lines, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lines {
    first: usize,
    last: usize,
}

impl FromStr for Lines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ends = text.split_once('-');
        let ends = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        match ends {
            Some((first, last)) if 1 <= first && first <= last => Ok(Self { first, last }),
            _ => Err("write two line numbers from 1, such as 3-20".to_owned()),
        }
    }
}

/// Draws standard input to standard output.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("reading standard input")?;
    let (skip, take) = args.lines.map_or((0, usize::MAX), |lines| {
        (lines.first - 1, lines.last + 1 - lines.first)
    });
    let lines: Vec<&str> = text.lines().skip(skip).take(take).collect();
    ensure!(!lines.is_empty(), "standard input has no such lines");
    anstream::print!("{}", Term::new().render_svg(&lines.join("\n")));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_lines_is_two_numbers_in_order() {
        assert_eq!("3-20".parse(), Ok(Lines { first: 3, last: 20 }));
        for wrong in ["", "3", "0-4", "9-4", "a-b"] {
            assert!(wrong.parse::<Lines>().is_err(), "{wrong}");
        }
    }
}
