//! From raw readings to figures, each with the target it is held against.

use guest_wire::report::{Report, Size, Start};
use serde::Serialize;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// What is measured, in a few words.
    pub(crate) name: &'static str,
    /// What the value is made of.
    pub(crate) means: &'static str,
    /// How a value is written.
    pub(crate) unit: Unit,
    /// A value may be at most this.
    pub(crate) target: f64,
    /// Which values are held against the target.
    pub(crate) judged: Judged,
    /// One value for each cluster size, smallest first.
    pub(crate) values: Vec<Value>,
    /// Whether every judged value is within the target.
    pub(crate) reached: bool,
}

/// The value of a figure at one cluster size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Value {
    /// Number of virtual servers.
    pub(crate) services: u32,
    /// In the figure's unit.
    pub(crate) value: f64,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    /// A ratio of two durations.
    Ratio,
    /// Milliseconds.
    Milliseconds,
    /// Megabytes, of 1,000,000 bytes.
    Megabytes,
    /// A number of events.
    Count,
}

/// Which values are held against the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Judged {
    /// All of them.
    Every,
    /// The one of the largest cluster.
    Largest,
}

impl Unit {
    /// `value` for a person.
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.2}"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// Every figure of a report, in the order of the table.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    let first = report.sizes.first();
    let growth = |of: fn(&Size) -> f64| move |size: &Size| of(size) / first.map_or(f64::NAN, of);
    let make = |row: Row, value: &dyn Fn(&Size) -> f64| Figure::new(row, &report.sizes, value);
    vec![
        make(COLD_LOAD, &cold_load),
        make(COLD_START, &cold_start),
        make(CHANGE_CPU, &change_cpu),
        make(CHANGE_CPU_GROWTH, &growth(change_cpu)),
        make(CHANGE_WALL_GROWTH, &growth(change_wall)),
        make(RESTART, &restart),
        make(RESTART_WRITES, &restart_writes),
        make(IDLE, &idle),
        make(MEMORY, &memory),
    ]
}

/// What is known of a figure before it is measured.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    means: &'static str,
    unit: Unit,
    target: f64,
    judged: Judged,
}

const COLD_LOAD: Row = Row {
    name: "cold load",
    means: "agent's apply phase / the same messages, made before, sent by a bare loop next to it; median",
    unit: Unit::Ratio,
    target: 1.15,
    judged: Judged::Every,
};
const COLD_START: Row = Row {
    name: "cold start",
    means: "process start to serving / (2 x bare loop next to it + reading the YAML); median",
    unit: Unit::Ratio,
    target: 1.0,
    judged: Judged::Largest,
};
const CHANGE_CPU: Row = Row {
    name: "one endpoint changed: CPU",
    means: "CPU time of the agent's loop for one change, event to last acknowledgement and after; median",
    unit: Unit::Milliseconds,
    target: 3.0,
    judged: Judged::Every,
};
const CHANGE_CPU_GROWTH: Row = Row {
    name: "one endpoint changed: CPU, growth",
    means: "the same / the same at the smallest size",
    unit: Unit::Ratio,
    target: 1.2,
    judged: Judged::Every,
};
const CHANGE_WALL_GROWTH: Row = Row {
    name: "one endpoint changed: time, growth",
    means: "file replaced to kernel changed, median / the same at the smallest size",
    unit: Unit::Ratio,
    target: 1.2,
    judged: Judged::Every,
};
const RESTART: Row = Row {
    name: "restart on a correct kernel",
    means: "input read to serving / a bare loop's dump next to it; median",
    unit: Unit::Ratio,
    target: 1.5,
    judged: Judged::Every,
};
const RESTART_WRITES: Row = Row {
    name: "restart: writes to IPVS",
    means: "commands sent in the first pass of any restart",
    unit: Unit::Count,
    target: 0.0,
    judged: Judged::Every,
};
const IDLE: Row = Row {
    name: "idle: wake-ups",
    means: "voluntary context switches of all threads while no periodic check is due",
    unit: Unit::Count,
    target: 0.0,
    judged: Judged::Every,
};
const MEMORY: Row = Row {
    name: "resident memory",
    means: "VmRSS of the settled agent, the larger of one file and a folder",
    unit: Unit::Megabytes,
    target: 60.0,
    judged: Judged::Largest,
};

impl Figure {
    fn new(row: Row, sizes: &[Size], value: &dyn Fn(&Size) -> f64) -> Self {
        let Row {
            name,
            means,
            unit,
            target,
            judged,
        } = row;
        let values: Vec<_> = sizes
            .iter()
            .map(|size| Value {
                services: size.services,
                value: value(size),
            })
            .collect();
        // A value that could not be formed (no readings) compares false, so it is never "reached".
        let within = |value: &Value| value.value <= target;
        let reached = match judged {
            Judged::Every => !values.is_empty() && values.iter().all(within),
            Judged::Largest => values.last().is_some_and(within),
        };
        Self {
            name,
            means,
            unit,
            target,
            judged,
            values,
            reached,
        }
    }
}

/// The middle one of the ratios of each start to the bare loop's run next to it: the machine is not
/// equally fast all the time, but nearly so within seconds.
fn beside(starts: &[Start], bare: &[f64], ratio: fn(&Start, f64) -> f64) -> f64 {
    let pairs = starts.iter().zip(bare);
    let mut ratios: Vec<f64> = pairs.map(|(start, bare)| ratio(start, *bare)).collect();
    ratios.sort_by(f64::total_cmp);
    median(&ratios)
}

fn cold_load(size: &Size) -> f64 {
    let ratio = |start: &Start, floor| start.apply / floor;
    beside(&size.load.agent, &size.load.floor, ratio)
}

fn cold_start(size: &Size) -> f64 {
    let ratio = |start: &Start, floor| start.ready / (2.0 * floor + start.read);
    beside(&size.load.agent, &size.load.floor, ratio)
}

fn change_cpu(size: &Size) -> f64 {
    median(&size.change.cpu_ms)
}

fn change_wall(size: &Size) -> f64 {
    median(&size.change.wall_ms)
}

/// The middle of a sorted list; NaN without any.
fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn restart(size: &Size) -> f64 {
    let ratio = |start: &Start, dump| start.pass / dump;
    beside(&size.restart.agent, &size.restart.dump, ratio)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of writes stay far below 2^52"
)]
fn restart_writes(size: &Size) -> f64 {
    let writes = size.restart.agent.iter().map(|start| start.writes);
    writes.max().map_or(f64::NAN, |writes| writes as f64)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of wake-ups stay far below 2^52"
)]
fn idle(size: &Size) -> f64 {
    size.idle.quiet_wakeups as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "memory in KiB stays far below 2^52"
)]
fn memory(size: &Size) -> f64 {
    let Size {
        memory_file,
        memory_folder,
        ..
    } = size;
    memory_file.resident_kib.max(memory_folder.resident_kib) as f64 * 1024.0 / 1e6
}

#[cfg(test)]
pub(crate) mod tests {
    use guest_wire::report::{Change, Idle, Load, Memory, Restart};

    use super::*;

    fn start(apply: f64, ready: f64, writes: u64) -> Start {
        Start {
            read: 1.0,
            dump: 0.1,
            compute: 0.2,
            apply,
            pass: apply + 0.3,
            ready,
            writes,
        }
    }

    /// A report in which every figure is within its target, but cold load at the largest size.
    pub(crate) fn report() -> Report {
        let size = |services: u32, apply: f64| Size {
            services,
            load: Load {
                floor: vec![1.0, 2.0, 1.0],
                agent: vec![
                    start(apply, 2.5, 11),
                    start(2.0 * apply, 2.9, 11),
                    start(apply + 0.5, 2.9, 11),
                ],
            },
            change: Change {
                cpu_ms: vec![1.0, 1.5, 9.0],
                reading_cpu_ms: vec![2.0, 2.5, 3.0],
                wall_ms: vec![4.0, 5.0, 50.0],
                latency_ms: 2.0,
            },
            restart: Restart {
                dump: vec![1.0, 0.9],
                agent: vec![start(0.0, 2.0, 0)],
            },
            idle: Idle {
                quiet_seconds: 5.0,
                ..Idle::default()
            },
            memory_file: Memory {
                resident_kib: 40_000,
                peak_kib: 70_000,
            },
            memory_folder: Memory {
                resident_kib: 39_000,
                peak_kib: 39_500,
            },
        };
        Report {
            kernel: "6.12.0-test".into(),
            endpoints: 10,
            sizes: vec![size(1_000, 1.1), size(10_000, 1.2)],
        }
    }

    fn figure(name: &str) -> Figure {
        let mut figures = figures(&report());
        figures.retain(|figure| figure.name == name);
        figures.remove(0)
    }

    #[test]
    fn readings_next_to_each_other_are_compared_and_one_size_above_the_target_is_a_miss() {
        let figure = figure("cold load");
        assert!((figure.values[0].value - 1.1).abs() < 1e-9);
        assert!((figure.values[1].value - 1.2).abs() < 1e-9);
        assert!(!figure.reached);
    }

    #[test]
    fn growth_is_relative_to_the_smallest_size_and_uses_the_median() {
        let figure = figure("one endpoint changed: time, growth");
        assert!((figure.values[1].value - 1.0).abs() < 1e-9);
        assert!(figure.reached);
    }

    #[test]
    fn a_write_at_a_restart_is_a_miss() {
        let mut report = report();
        report.sizes[0].restart.agent[0].writes = 1;
        let figure = figures(&report)
            .into_iter()
            .find(|figure| figure.name == RESTART_WRITES.name);
        assert!(!figure.unwrap().reached);
    }

    #[test]
    fn a_figure_without_readings_is_never_reached() {
        let mut report = report();
        report.sizes[1].load = Load::default();
        report.sizes[1].restart = Restart::default();
        for figure in figures(&report) {
            let missing = [
                COLD_LOAD.name,
                COLD_START.name,
                RESTART.name,
                RESTART_WRITES.name,
            ];
            assert_eq!(
                figure.reached,
                !missing.contains(&figure.name),
                "{}",
                figure.name
            );
        }
        assert!(
            figures(&Report {
                sizes: vec![],
                ..report
            })
            .iter()
            .all(|figure| !figure.reached)
        );
    }
}
