//! Prints progress to standard error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of updates on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Interval of lines in a file.
const LINE: Duration = Duration::from_secs(5);

/// Counts Services, and prints the progress periodically.
#[derive(Debug)]
pub(crate) struct Progress {
    all: usize,
    started: Instant,
    terminal: bool,
    state: Mutex<ProgressState>,
}

/// The state that threads share.
#[derive(Debug)]
struct ProgressState {
    done: usize,
    printed: Instant,
    drawn: bool,
}

impl Progress {
    /// Starts with none of `all` steps done.
    pub(crate) fn new(all: usize) -> Self {
        let now = Instant::now();
        let terminal = std::io::stderr().is_terminal();
        Self {
            all,
            started: now,
            terminal,
            state: Mutex::new(ProgressState {
                done: 0,
                printed: now,
                drawn: false,
            }),
        }
    }

    pub(crate) fn tick(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        let pause = if self.terminal { REDRAW } else { LINE };
        if state.printed.elapsed() >= pause && state.done < self.all {
            state.printed = Instant::now();
            state.drawn = true;
            self.print(state.done);
        }
    }

    fn print(&self, done: usize) {
        let percent = done * 100 / self.all.max(1);
        let seconds = self.started.elapsed().as_secs();
        let (before, after) = if self.terminal {
            ("\r\x1b[K", "")
        } else {
            ("", "\n")
        };
        // If standard error is closed, there is no way to report that.
        let _written = write!(
            std::io::stderr().lock(),
            "{before}simulating: {percent} %, {seconds} s{after}"
        );
    }
}

impl Drop for Progress {
    /// Clears the line on a terminal.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.drawn && self.terminal {
            let _written = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
