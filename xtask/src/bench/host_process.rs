//! A program on the host, with what it uses.

use std::fs;
use std::io;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use anyhow::Context as _;

/// The kernel counts the CPU time of a program in hundredths of a second (proc(5)).
const TICK: Duration = Duration::from_millis(10);

/// A running program; killed when dropped.
pub(super) struct HostProcess(Child);

impl HostProcess {
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let child = command.spawn();
        let name = command.get_program().display();
        Ok(Self(child.with_context(|| format!("cannot start {name}"))?))
    }

    /// Returns its standard output, if that is a pipe; only once.
    pub(super) fn take_output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// Returns how it exited; `None` while it runs.
    pub(super) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// Reads its memory.
    pub(super) fn resident_kib(&self) -> anyhow::Result<u64> {
        self.read("status", |status| kib(status, "VmRSS:"))
    }

    /// Reads the most memory that it has had.
    pub(super) fn peak_kib(&self) -> anyhow::Result<u64> {
        self.read("status", |status| kib(status, "VmHWM:"))
    }

    /// Reads its CPU time since its start.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        self.read("stat", cpu_time)
    }

    fn read<T>(&self, file: &str, parse: impl FnOnce(&str) -> Option<T>) -> anyhow::Result<T> {
        let path = format!("/proc/{}/{file}", self.0.id());
        let text = fs::read_to_string(&path).with_context(|| path.clone())?;
        parse(&text).with_context(|| format!("{path} lacks a field: has the program exited?"))
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns an amount of memory in `/proc/PID/status`.
fn kib(status: &str, field: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

/// Returns the sum of user and system time: fields 14 and 15 of `/proc/PID/stat`.
fn cpu_time(stat: &str) -> Option<Duration> {
    // The second field, the name of the program, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11);
    let user: u32 = times.next()?.parse().ok()?;
    let system: u32 = times.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn times_are_behind_a_name_with_spaces() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 150 25 3 4 20 0 1 0 99\n";
        assert_eq!(cpu_time(stat), Some(Duration::from_millis(1_750)));
        assert_eq!(cpu_time("7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 150"), None);
    }

    #[test]
    fn memory_is_the_field_with_this_name() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(1_024));
        assert_eq!(kib(status, "VmHWM:"), Some(2_048));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn a_running_program_has_memory_and_one_that_exited_has_none() {
        let mut running = Command::new("sleep");
        let mut process = HostProcess::start(running.arg("60")).unwrap();
        assert!(process.exited().unwrap().is_none());
        assert!(process.resident_kib().unwrap() > 0 && process.peak_kib().unwrap() > 0);
        assert!(process.cpu_time().unwrap() < Duration::from_secs(10));
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        assert!(process.resident_kib().is_err() && process.peak_kib().is_err());
        let mut missing = Command::new("/no/such/program");
        let error = HostProcess::start(missing.stdin(Stdio::null()))
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "cannot start /no/such/program");
    }
}
