//! Reads CPU time, context switches and memory of a process from /proc.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use guest_wire::report::ResidentMemory;

/// The resources that a process has used since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// CPU time of the first thread, which runs the agent's loop, in nanoseconds.
    pub(crate) first_ns: u64,
    /// CPU time of the other threads that still run, in nanoseconds.
    pub(crate) others_ns: u64,
    /// Voluntary context switches of all threads that still run, so the number of wake-ups.
    pub(crate) sleeps: u64,
}

impl ProcessUsage {
    /// Returns what was used since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            first_ns: self.first_ns.saturating_sub(earlier.first_ns),
            others_ns: self.others_ns.saturating_sub(earlier.others_ns),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
        }
    }

    pub(crate) fn first(self) -> Duration {
        Duration::from_nanos(self.first_ns)
    }

    pub(crate) fn others(self) -> Duration {
        Duration::from_nanos(self.others_ns)
    }
}

/// Reads CPU time and context switches of process `pid`.
pub(crate) fn read(pid: u32) -> Result<ProcessUsage> {
    let mut usage = ProcessUsage::default();
    for thread in threads(pid)? {
        let (cpu, sleeps) = match of_thread(&thread) {
            // The thread has exited since it was listed.
            Err(_) if !thread.exists() => continue,
            found => found?,
        };
        if thread.ends_with(pid.to_string()) {
            usage.first_ns += cpu;
        } else {
            usage.others_ns += cpu;
        }
        usage.sleeps += sleeps;
    }
    Ok(usage)
}

/// Reads CPU time in nanoseconds and voluntary context switches of a thread.
fn of_thread(thread: &Path) -> Result<(u64, u64)> {
    let sleeps = field(&text(&thread.join("status"))?, "voluntary_ctxt_switches:")?;
    Ok((cpu_of(thread)?, sleeps))
}

/// Reads the resident memory of process `pid`.
pub(crate) fn memory(pid: u32) -> Result<ResidentMemory> {
    let status = text(&PathBuf::from(format!("/proc/{pid}/status")))?;
    Ok(ResidentMemory {
        resident_kib: field(&status, "VmRSS:")?,
        peak_kib: field(&status, "VmHWM:")?,
    })
}

/// Reads the idle time of all CPUs since boot, in clock ticks (`/proc/stat`, fields 4 and 5 of `cpu`).
pub(crate) fn idle_ticks() -> Result<u64> {
    let stat = text(Path::new("/proc/stat"))?;
    let line = stat.lines().next().context("/proc/stat is empty")?;
    Ok(line
        .split_whitespace()
        .skip(4)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum())
}

fn threads(pid: u32) -> Result<Vec<PathBuf>> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).with_context(|| folder.clone())?;
    Ok(entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?)
}

/// Reads the first field of `schedstat`: CPU time in ns (Documentation/scheduler/sched-stats.rst).
fn cpu_of(thread: &Path) -> Result<u64> {
    let path = thread.join("schedstat");
    text(&path)?
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse().ok())
        .with_context(|| format!("{} has no CPU time", path.display()))
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Returns the number after `name` at the beginning of a line.
fn field(status: &str, name: &str) -> Result<u64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|value| value.parse().ok())
        .with_context(|| format!("no `{name}` in a status file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_has_used_cpu_time_and_memory() {
        let pid = std::process::id();
        let before = read(pid).unwrap();
        let mut sum = 0_u64;
        for number in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum ^ number);
        }
        let used = read(pid).unwrap().since(before);
        // A test does not run on the first thread.
        assert!(used.others() > Duration::from_micros(100), "{used:?} {sum}");
        let memory = memory(pid).unwrap();
        assert!(memory.resident_kib > 0 && memory.peak_kib >= memory.resident_kib);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:").unwrap(), 3);
        assert!(field(status, "VmRSS:").is_err());
    }
}
