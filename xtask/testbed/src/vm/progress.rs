//! What a person sees while something takes time: one line a step, with the seconds it took.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// A step under way, shown on standard error. On a terminal the line is rewritten; in a log
/// each report is a line of its own.
pub struct Step {
    name: String,
    began: Instant,
    rewrite: bool,
}

impl Step {
    /// Shows that `name` begins.
    pub fn begin(name: impl Into<String>) -> Self {
        let rewrite = std::io::stderr().is_terminal();
        let step = Self {
            name: name.into(),
            began: Instant::now(),
            rewrite,
        };
        step.show("...", false);
        step
    }

    /// Shows how far the step is.
    pub(crate) fn report(&self, news: &str) {
        self.show(&format!("... {news}"), false);
    }

    /// Shows that the step ended well, with a remark.
    pub fn done(self, remark: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        let remark = if remark.is_empty() {
            String::new()
        } else {
            format!(" {remark}")
        };
        self.show(&format!("{seconds:.1} s{remark}"), true);
    }

    fn show(&self, state: &str, last: bool) {
        let mut out = std::io::stderr().lock();
        let text = format!("  {} {state}", self.name);
        // A progress line that cannot be shown is not worth failing for.
        let shown = if self.rewrite {
            write!(out, "\r\x1b[K{text}{}", if last { "\n" } else { "" })
        } else {
            writeln!(out, "{text}")
        };
        drop(shown.and_then(|()| out.flush()));
    }
}
