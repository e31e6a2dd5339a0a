//! The time as of which files are looked at.

use clap::Args;

use super::values;

/// When files are looked at.
#[derive(Debug, Clone, Copy, Args)]
pub struct MomentArgs {
    /// Look at the files as of this time: drains, ramps and ends are judged by it; default: now.
    #[arg(long, value_name = "TIME", value_parser = values::moment)]
    pub now: Option<i64>,
}

impl MomentArgs {
    /// Milliseconds since 1970.
    pub fn get(self) -> i64 {
        self.now.unwrap_or_else(values::now)
    }
}
