//! `--strict`: warnings about the input end a command as errors do.

use agent_api::numbers::many;
use clap::Args;

use crate::exit::{ExitStatus, Failure};
use crate::output::print;

/// How much warnings about the input weigh.
#[derive(Debug, Clone, Copy, Args)]
pub struct StrictArgs {
    /// Exit with code 2 if there is any warning about the input; the result is printed all the same.
    #[arg(long)]
    pub strict: bool,
}

/// Who reads the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A person, for whom a last line counts the warnings.
    Person,
    /// A program: its JSON has the warnings.
    Program,
}

impl StrictArgs {
    /// Ends a command that printed its result and so many warnings.
    ///
    /// # Errors
    /// There are warnings, and they are errors.
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
