//! How far it is, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Between two lines that are drawn over each other on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Between two lines in a file.
const LINE: Duration = Duration::from_secs(5);

/// Counts Services, and tells now and then.
#[derive(Debug)]
pub(crate) struct Progress {
    done: usize,
    all: usize,
    started: Instant,
    told: Instant,
    terminal: bool,
    drawn: bool,
}

impl Progress {
    /// Of `all` steps none is done.
    pub(crate) fn new(all: usize) -> Self {
        let now = Instant::now();
        let terminal = std::io::stderr().is_terminal();
        Self {
            done: 0,
            all,
            started: now,
            told: now,
            terminal,
            drawn: false,
        }
    }

    /// One more is done.
    pub(crate) fn tick(&mut self) {
        self.done += 1;
        let pause = if self.terminal { REDRAW } else { LINE };
        if self.told.elapsed() >= pause && self.done < self.all {
            self.told = Instant::now();
            self.tell();
        }
    }

    fn tell(&mut self) {
        let percent = self.done * 100 / self.all.max(1);
        let seconds = self.started.elapsed().as_secs();
        let (before, after) = if self.terminal {
            ("\r\x1b[K", "")
        } else {
            ("", "\n")
        };
        self.drawn = true;
        // Nobody is left to tell that standard error is closed.
        let _written = write!(
            std::io::stderr().lock(),
            "{before}simulating: {percent} %, {seconds} s{after}"
        );
    }
}

impl Drop for Progress {
    /// Leaves nothing on a terminal.
    fn drop(&mut self) {
        if self.drawn && self.terminal {
            let _written = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}
