//! Prints one line for each step that takes time, with its duration.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// A running step, printed to standard error. On a terminal the line is rewritten; in a log each report is a line.
pub struct ProgressLine {
    name: String,
    began: Instant,
    rewrite: bool,
}

impl ProgressLine {
    /// Prints that `name` begins.
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

    /// Prints the progress of the step.
    pub(crate) fn report(&self, news: &str) {
        self.show(&format!("... {news}"), false);
    }

    /// Prints the duration of the step, with a remark.
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
        // A progress line that cannot be printed is no failure.
        let shown = if self.rewrite {
            write!(out, "\r\x1b[K{text}{}", if last { "\n" } else { "" })
        } else {
            writeln!(out, "{text}")
        };
        drop(shown.and_then(|()| out.flush()));
    }
}
