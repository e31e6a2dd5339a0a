//! `--strict`: warnings about the input become errors.

use agent_api::numbers::many;
use clap::Args;

use crate::exit::{ExitStatus, Failure};
use crate::output::print;

#[derive(Debug, Clone, Copy, Args)]
pub struct StrictArgs {
    /// Exit with code 2 if there are warnings about the input; the result is still printed.
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A last line counts the warnings.
    Person,
    /// The JSON has the warnings.
    Program,
}

impl StrictArgs {
    /// Prints the number of warnings, after the result.
    ///
    /// # Errors
    /// There are warnings, and `--strict` is set.
    pub fn end(
        self,
        warnings: usize,
        reader: Reader,
        outcome: ExitStatus,
    ) -> Result<ExitStatus, Failure> {
        let count = many(warnings as u64, "warning");
        let become_errors = match warnings {
            0 => return Ok(outcome),
            1 => "makes it an error",
            _ => "makes them errors",
        };
        if self.strict {
            return Err(Failure::input(format_args!(
                "{count}, and --strict {become_errors}"
            )));
        }
        if reader == Reader::Person {
            print::aside(&format!("{count}; --strict {become_errors}"));
        }
        Ok(outcome)
    }
}
