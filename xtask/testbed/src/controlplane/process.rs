//! One process of ours, known by its number and its start, so that a stranger is never ended in its place.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::vm::command::output;

/// How long a process may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is asked to, and killed when it takes too long.
    Asked,
    /// It is killed at once.
    Killed,
}

/// A process. Its start tells it from a stranger that got the same number later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pid: u32,
    /// When it began, in the kernel's clock ticks since boot (`/proc/PID/stat`, field 22).
    began: u64,
}

impl Process {
    /// The process `pid`, which runs.
    pub(crate) fn new(pid: u32) -> anyhow::Result<Self> {
        let began = began(pid).context("it ended at once")?;
        Ok(Self { pid, began })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// Ends it, and returns when it is gone.
    pub(crate) fn end(&self, how: Ending) -> anyhow::Result<()> {
        if how == Ending::Asked {
            self.signal("-TERM")?;
            self.wait();
        }
        self.signal("-KILL")?;
        self.wait();
        Ok(())
    }

    fn wait(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        let sent = output(Command::new("kill").args([signal, &self.pid.to_string()]));
        // One that ended in between is ended all the same.
        sent.map(drop).or_else(|error| {
            if self.is_running() {
                Err(error)
            } else {
                Ok(())
            }
        })
    }
}

/// When the process began; none if there is none, or only what is left of it.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // What is left of one whose other threads still end holds its files and ports until they have.
    let threads: u32 = fields.get(17)?.parse().ok()?;
    if *fields.first()? == "Z" && threads <= 1 {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let me = Process::new(std::process::id()).unwrap();
        assert!(me.is_running());
        let stranger = Process {
            began: me.began + 1,
            ..me
        };
        assert!(!stranger.is_running());
    }

    #[test]
    fn a_process_that_ended_is_not_running_even_if_nobody_asked_for_its_status() {
        for how in [Ending::Asked, Ending::Killed] {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let process = Process::new(child.id()).unwrap();
            process.end(how).unwrap();
            assert!(!process.is_running());
            process.end(how).unwrap();
            child.wait().unwrap();
        }
    }
}
