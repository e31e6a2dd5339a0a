//! This process: its resource usage, under the names that every Prometheus client library uses, and its signals.

use std::fmt;
use std::fs;
use std::io;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::signal::unix::{SignalKind, signal};

/// The `process_*` metrics of this process, read at each scrape: `registry.register_collector(Box::new(Process))`. The
/// registry must have no prefix.
#[derive(Debug, Clone, Copy)]
pub struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let figures = read();
        let cpu = ConstCounter::new(figures.cpu_seconds);
        encode(
            &mut encoder,
            "process_cpu_seconds",
            "CPU time in user and system mode.",
            &cpu,
        )?;
        let resident = ConstGauge::new(figures.resident_bytes);
        encode(
            &mut encoder,
            "process_resident_memory_bytes",
            "Resident memory.",
            &resident,
        )?;
        encode_start(&mut encoder, figures)?;
        let open_files = ConstGauge::new(figures.open_files);
        encode(
            &mut encoder,
            "process_open_fds",
            "Open file descriptors.",
            &open_files,
        )
    }
}

/// The start time of this process alone, for a registry beside that of [`Process`].
#[derive(Debug, Clone, Copy)]
pub struct ProcessStart;

impl Collector for ProcessStart {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode_start(&mut encoder, read())
    }
}

fn encode_start(encoder: &mut DescriptorEncoder<'_>, figures: ProcessStats) -> fmt::Result {
    encode(
        encoder,
        "process_start_time_seconds",
        "Start of the process, as Unix time.",
        &ConstGauge::new(figures.start_seconds),
    )
}

fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: &dyn EncodeMetric,
) -> fmt::Result {
    let place = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
    metric.encode(place)
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ProcessStats {
    /// User plus system time, in seconds.
    cpu_seconds: f64,
    /// Resident memory, in bytes.
    resident_bytes: u64,
    /// Start time, in seconds since 1970.
    start_seconds: f64,
    open_files: u64,
}

/// Reads the current values; a value that cannot be read is 0.
fn read() -> ProcessStats {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
    let open_files = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let ticks = rustix::param::clock_ticks_per_second();
    let page = rustix::param::page_size() as u64;
    parse(&stat, &statm, &boot, ticks, page, open_files)
}

/// Parses fields of proc(5): in `stat` 14 utime, 15 stime and 22 starttime (clock ticks); in `statm` the second,
/// resident pages; in the system's `stat` the line `btime`.
fn parse(
    stat: &str,
    statm: &str,
    boot: &str,
    ticks: u64,
    page: u64,
    open_files: u64,
) -> ProcessStats {
    // The second field, the program's name, may contain spaces; it ends at the last bracket.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let number = |field: usize| -> u64 {
        fields
            .get(field - 3)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    };
    let seconds = |count: u64| -> f64 { to_f64(count) / to_f64(ticks.max(1)) };
    let resident = statm
        .split_whitespace()
        .nth(1)
        .and_then(|text| text.parse::<u64>().ok());
    let booted = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    ProcessStats {
        cpu_seconds: seconds(number(14) + number(15)),
        resident_bytes: resident.unwrap_or_default() * page,
        start_seconds: booted.map_or(0.0, to_f64) + seconds(number(22)),
        open_files,
    }
}

/// Completes at SIGTERM or SIGINT. The signals are received from the call on.
///
/// # Errors
/// The signals cannot be received.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Makes the kernel kill this process later than others when memory runs out, as kube-proxy does: -1000 is never, 1000
/// is first.
///
/// # Errors
/// The process may not lower its value (it needs `CAP_SYS_RESOURCE`), or `/proc` is read-only.
pub fn adjust_oom_score(value: i16) -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", value.to_string())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "ticks and seconds stay far below 2^53"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 12345 1000 200";
        let process = parse(
            stat,
            "1000 200 0 0 0 0 0",
            "cpu 1\nbtime 1000\n",
            100,
            4096,
            9,
        );
        let expected = ProcessStats {
            cpu_seconds: 2.0,
            resident_bytes: 819_200,
            start_seconds: 1123.45,
            open_files: 9,
        };
        assert_eq!(process, expected);
    }

    #[test]
    fn this_process_has_memory_and_a_start() {
        let process = read();
        assert!(
            process.resident_bytes > 0 && process.start_seconds > 1e9,
            "{process:?}"
        );
        assert!(process.open_files >= 3, "{process:?}");
    }
}
