//! Identifies a process by PID and start time, so that no other process with the same PID is ever killed.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::vm::command::output;

/// Limit for a process to exit after SIGTERM.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How a process is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    /// With SIGTERM, and with SIGKILL after the timeout.
    Terminate,
    /// With SIGKILL.
    Kill,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pid: u32,
    /// Its start time in clock ticks since boot (`/proc/PID/stat`, field 22).
    began: u64,
}

impl Process {
    /// Identifies the running process `pid`.
    pub(crate) fn new(pid: u32) -> anyhow::Result<Self> {
        let began = began(pid).context("it ended at once")?;
        Ok(Self { pid, began })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn is_running(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// Stops it and waits until it has exited.
    pub(crate) fn end(&self, how: StopMode) -> anyhow::Result<()> {
        if how == StopMode::Terminate {
            self.signal("-TERM")?;
            self.wait();
        }
        self.signal("-KILL")?;
        self.wait();
        Ok(())
    }

    fn wait(&self) {
        let deadline = Instant::now() + TIMEOUT;
        while self.is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        let sent = output(Command::new("kill").args([signal, &self.pid.to_string()]));
        // It may have exited in between.
        sent.map(drop).or_else(|error| {
            if self.is_running() {
                Err(error)
            } else {
                Ok(())
            }
        })
    }
}

/// Returns the start time of the process; `None` if there is none, or only a zombie.
fn began(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // A zombie whose other threads still exit holds its files and ports until they have.
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
    fn a_zombie_process_is_not_running() {
        for how in [StopMode::Terminate, StopMode::Kill] {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let process = Process::new(child.id()).unwrap();
            process.end(how).unwrap();
            assert!(!process.is_running());
            process.end(how).unwrap();
            child.wait().unwrap();
        }
    }
}
