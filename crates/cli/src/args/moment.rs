//! The time for which files are evaluated.

use clap::Args;

use super::values;

#[derive(Debug, Clone, Copy, Args)]
pub struct MomentArgs {
    /// Evaluate drains, ramps and end times as of this time; default: now.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub now: Option<i64>,
}

impl MomentArgs {
    /// Milliseconds since 1970.
    pub fn get(self) -> i64 {
        self.now.unwrap_or_else(values::now)
    }
}
