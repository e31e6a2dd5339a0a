//! Derives figures from raw readings, and compares each with its target.

use guest_wire::report::{AgentStart, Report, SizeReport};

use super::median::median;

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The name of the measured value.
    pub(crate) name: &'static str,
    /// How the value is calculated.
    pub(crate) means: &'static str,
    pub(crate) unit: Unit,
    /// The upper limit.
    pub(crate) target: f64,
    /// The values that must be within the target.
    pub(crate) scope: TargetScope,
    /// One value for each cluster size, smallest first.
    pub(crate) values: Vec<FigureValue>,
    /// Whether these values are within the target.
    pub(crate) reached: bool,
}

/// The value of a figure at one cluster size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FigureValue {
    /// Number of virtual servers.
    pub(crate) services: u32,
    pub(crate) value: f64,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The values that must be within the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetScope {
    Every,
    /// The value of the largest cluster.
    Largest,
}

impl Unit {
    /// Formats `value` with its unit.
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.2}"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// Derives every figure of a report, in the order of the table.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    let first = report.sizes.first();
    let growth =
        |of: fn(&SizeReport) -> f64| move |size: &SizeReport| of(size) / first.map_or(f64::NAN, of);
    let make = |row: FigureDefinition, value: &dyn Fn(&SizeReport) -> f64| {
        Figure::new(row, &report.sizes, value)
    };
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

/// The definition of a figure.
#[derive(Clone, Copy)]
struct FigureDefinition {
    name: &'static str,
    means: &'static str,
    unit: Unit,
    target: f64,
    scope: TargetScope,
}

const COLD_LOAD: FigureDefinition = FigureDefinition {
    name: "cold load",
    means: "agent's apply phase / the same messages, made before, sent by a bare loop next to it; median",
    unit: Unit::Ratio,
    target: 1.15,
    scope: TargetScope::Every,
};
const COLD_START: FigureDefinition = FigureDefinition {
    name: "cold start",
    means: "process start to serving / (2 x bare loop next to it + reading the YAML); median",
    unit: Unit::Ratio,
    target: 1.0,
    scope: TargetScope::Largest,
};
const CHANGE_CPU: FigureDefinition = FigureDefinition {
    name: "one endpoint changed: CPU",
    means: "CPU time of the agent's loop for one change, event to last acknowledgement and after; median",
    unit: Unit::Milliseconds,
    target: 3.0,
    scope: TargetScope::Every,
};
const CHANGE_CPU_GROWTH: FigureDefinition = FigureDefinition {
    name: "one endpoint changed: CPU, growth",
    means: "the same / the same at the smallest size",
    unit: Unit::Ratio,
    target: 1.2,
    scope: TargetScope::Every,
};
const CHANGE_WALL_GROWTH: FigureDefinition = FigureDefinition {
    name: "one endpoint changed: time, growth",
    means: "file replaced to kernel changed, median / the same at the smallest size",
    unit: Unit::Ratio,
    target: 1.2,
    scope: TargetScope::Every,
};
const RESTART: FigureDefinition = FigureDefinition {
    name: "restart on a correct kernel",
    means: "input read to serving / a bare loop's dump next to it; median",
    unit: Unit::Ratio,
    target: 1.5,
    scope: TargetScope::Every,
};
const RESTART_WRITES: FigureDefinition = FigureDefinition {
    name: "restart: writes to IPVS",
    means: "commands sent in the first pass of any restart",
    unit: Unit::Count,
    target: 0.0,
    scope: TargetScope::Every,
};
const IDLE: FigureDefinition = FigureDefinition {
    name: "idle: wake-ups",
    means: "voluntary context switches of all threads while no periodic check is due",
    unit: Unit::Count,
    target: 0.0,
    scope: TargetScope::Every,
};
const MEMORY: FigureDefinition = FigureDefinition {
    name: "resident memory",
    means: "VmRSS of the settled agent, the larger of one file and a folder",
    unit: Unit::Megabytes,
    target: 60.0,
    scope: TargetScope::Largest,
};

impl Figure {
    fn new(
        row: FigureDefinition,
        sizes: &[SizeReport],
        value: &dyn Fn(&SizeReport) -> f64,
    ) -> Self {
        let FigureDefinition {
            name,
            means,
            unit,
            target,
            scope,
        } = row;
        let values: Vec<_> = sizes
            .iter()
            .map(|size| FigureValue {
                services: size.services,
                value: value(size),
            })
            .collect();
        // A value without readings is NaN, which compares false, so its target is never reached.
        let within = |value: &FigureValue| value.value <= target;
        let reached = match scope {
            TargetScope::Every => !values.is_empty() && values.iter().all(within),
            TargetScope::Largest => values.last().is_some_and(within),
        };
        Self {
            name,
            means,
            unit,
            target,
            scope,
            values,
            reached,
        }
    }
}

/// Returns the median ratio of each start to the bare loop's run next to it: the machine's speed varies, but little
/// within seconds.
fn beside(starts: &[AgentStart], bare: &[f64], ratio: fn(&AgentStart, f64) -> f64) -> f64 {
    let pairs = starts.iter().zip(bare);
    median(pairs.map(|(start, bare)| ratio(start, *bare)))
}

fn cold_load(size: &SizeReport) -> f64 {
    let ratio = |start: &AgentStart, floor| start.apply / floor;
    beside(&size.load.agent, &size.load.floor, ratio)
}

fn cold_start(size: &SizeReport) -> f64 {
    let ratio = |start: &AgentStart, floor| start.ready / (2.0 * floor + start.read);
    beside(&size.load.agent, &size.load.floor, ratio)
}

fn change_cpu(size: &SizeReport) -> f64 {
    median(size.change.cpu_ms.iter().copied())
}

fn change_wall(size: &SizeReport) -> f64 {
    median(size.change.wall_ms.iter().copied())
}

fn restart(size: &SizeReport) -> f64 {
    let ratio = |start: &AgentStart, dump| start.pass / dump;
    beside(&size.restart.agent, &size.restart.dump, ratio)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of writes stay far below 2^52"
)]
fn restart_writes(size: &SizeReport) -> f64 {
    let writes = size.restart.agent.iter().map(|start| start.writes);
    writes.max().map_or(f64::NAN, |writes| writes as f64)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of wake-ups stay far below 2^52"
)]
fn idle(size: &SizeReport) -> f64 {
    size.idle.quiet_wakeups as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "memory in KiB stays far below 2^52"
)]
fn memory(size: &SizeReport) -> f64 {
    let SizeReport {
        memory_file,
        memory_folder,
        ..
    } = size;
    memory_file.resident_kib.max(memory_folder.resident_kib) as f64 * 1024.0 / 1e6
}

#[cfg(test)]
pub(crate) mod tests {
    use guest_wire::report::{ChangeCost, ColdLoad, Idle, ResidentMemory, Restart};

    use super::*;

    fn start(apply: f64, ready: f64, writes: u64) -> AgentStart {
        AgentStart {
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
        let size = |services: u32, apply: f64| SizeReport {
            services,
            load: ColdLoad {
                floor: vec![1.0, 2.0, 1.0],
                agent: vec![
                    start(apply, 2.5, 11),
                    start(2.0 * apply, 2.9, 11),
                    start(apply + 0.5, 2.9, 11),
                ],
            },
            change: ChangeCost {
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
            memory_file: ResidentMemory {
                resident_kib: 40_000,
                peak_kib: 70_000,
            },
            memory_folder: ResidentMemory {
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
        report.sizes[1].load = ColdLoad::default();
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
