//! The readings side by side, as ratios to ours, and the targets that they are held against.

use guest_wire::report::{Churn, Rival, RivalChange};

use crate::bench::table::{aligned, thousands};

/// What ours is called.
const OURS: &str = "ipvs-topo";

/// What the others are called.
const RIVALS: [&str; 2] = ["kube-proxy ipvs", "kube-proxy nftables"];

/// Stands where nothing was measured.
const NOTHING: &str = "-";

/// The cluster size that is judged.
const JUDGED: u32 = 10_000;

/// One row: what it is called, its unit, and its value.
pub(super) struct Row {
    pub(super) name: &'static str,
    unit: &'static str,
    pub(super) value: fn(&Rival) -> f64,
}

pub(super) const ROWS: [Row; 7] = [
    Row {
        name: "start to all programmed",
        unit: "s",
        value: |rival| rival.start,
    },
    Row {
        name: "one endpoint, API write to traffic",
        unit: "s",
        value: |rival| median(&rival.changes, |change| change.seconds),
    },
    Row {
        name: "CPU for it",
        unit: "s",
        value: |rival| median(&rival.changes, |change| change.cpu),
    },
    Row {
        name: "restart",
        unit: "s",
        value: |rival| rival.restart,
    },
    Row {
        name: "resident memory",
        unit: "MB",
        value: |rival| as_float(rival.memory.resident_kib) * 1.024e-3,
    },
    Row {
        name: "requests until it rests",
        unit: "",
        value: |rival| rival.requests,
    },
    Row {
        name: "bytes until it rests",
        unit: "MB",
        value: |rival| as_float(rival.bytes) * 1e-6,
    },
];

/// A Markdown table: for each size and figure ours, and every rival's value and its ratio to ours.
pub(super) fn table(readings: &[Rival]) -> String {
    let head = [
        "Services", "figure", OURS, RIVALS[0], "ratio", RIVALS[1], "ratio",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut sizes: Vec<u32> = readings.iter().map(|rival| rival.services).collect();
    sizes.dedup();
    for services in sizes {
        rows.extend(ROWS.iter().map(|row| row.cells(readings, services)));
        let ours = find(readings, OURS, services);
        rows.extend(ours.and_then(|ours| Some(rolling(services, ours.churn.as_ref()?))));
    }
    aligned(&rows)
}

/// The row about rolling updates.
fn rolling(services: u32, churn: &Churn) -> Vec<String> {
    let figure = format!("{:.0} endpoints/s for {:.0} s", rate(churn), churn.seconds);
    let ours = format!(
        "{:.1} % of a core ({:.1} by the guest's clock), a bare loop that deletes at once {:.1}; lag {:.3} s",
        share(churn, used(churn)),
        share(churn, churn.cpu),
        share(churn, churn.eager),
        worst_lag(churn)
    );
    let mut cells = vec![thousands(services), figure, ours];
    cells.resize(7, NOTHING.to_owned());
    cells
}

fn rate(churn: &Churn) -> f64 {
    churn.replaced / churn.seconds
}

/// How much of a core `cpu` is.
fn share(churn: &Churn, cpu: f64) -> f64 {
    100.0 * cpu / churn.seconds
}

/// The CPU time that the agent had: the guest's clock counts when its processors waited for this machine's, too.
fn used(churn: &Churn) -> f64 {
    churn.cpu * churn.given
}

fn worst_lag(churn: &Churn) -> f64 {
    churn.lags.iter().copied().fold(0.0, f64::max)
}

/// Whether there is something to compare: ours and another at the size that is judged.
pub(super) fn is_compared(readings: &[Rival]) -> bool {
    let at_size = |name| find(readings, name, JUDGED).is_some();
    at_size(OURS) && RIVALS.into_iter().any(at_size)
}

/// One sentence for each target that was missed.
pub(super) fn missed(readings: &[Rival]) -> Vec<String> {
    let mut missed = Vec::new();
    let Some(ours) = find(readings, OURS, JUDGED) else {
        return missed;
    };
    for rival in readings
        .iter()
        .filter(|rival| rival.services == JUDGED && rival.name != OURS)
    {
        for row in &ROWS {
            let ratio = (row.value)(rival) / (row.value)(ours);
            let wanted = row.wanted(&rival.name);
            let reached = ratio >= wanted;
            if !reached {
                missed.push(format!(
                    "{} of {}: {ratio:.2} times ours, {wanted} wanted",
                    row.name, rival.name
                ));
            }
        }
    }
    missed.extend(ours.churn.as_ref().and_then(missed_rolling));
    missed
}

fn missed_rolling(churn: &Churn) -> Option<String> {
    let (rate, lag) = (rate(churn), worst_lag(churn));
    let (used, eager) = (share(churn, used(churn)), share(churn, churn.eager));
    let reached = used <= 30.0 && lag <= 1.0 && rate >= 950.0;
    (!reached).then(|| {
        format!(
            "rolling updates: {rate:.0} endpoints/s (1,000 wanted), lag {lag:.2} s (1), {used:.0} % of a core (30; a bare \
             loop that deletes at once: {eager:.0})"
        )
    })
}

impl Row {
    fn cells(&self, readings: &[Rival], services: u32) -> Vec<String> {
        let ours = find(readings, OURS, services);
        let cell =
            |rival: Option<&Rival>| rival.map_or(NOTHING.to_owned(), |rival| self.cell(rival));
        let mut cells = vec![thousands(services), self.name.to_owned(), cell(ours)];
        for name in RIVALS {
            let rival = find(readings, name, services);
            let ratio = rival
                .zip(ours)
                .map(|(rival, ours)| (self.value)(rival) / (self.value)(ours));
            cells.push(cell(rival));
            cells.push(ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.1}")));
        }
        cells
    }

    /// The value for a person.
    pub(super) fn cell(&self, rival: &Rival) -> String {
        let value = (self.value)(rival);
        let digits = match value {
            _ if self.unit.is_empty() => 0,
            large if large >= 100.0 => 0,
            middle if middle >= 1.0 => 1,
            _ => 4,
        };
        format!("{value:.digits$} {}", self.unit)
            .trim_end()
            .to_owned()
    }

    /// How many times our value a rival's is to be at least.
    fn wanted(&self, rival: &str) -> f64 {
        match self.name {
            "start to all programmed" if rival == "kube-proxy ipvs" => 20.0,
            "CPU for it" => 2_000.0,
            "resident memory" => 4.0,
            _ => 1.0,
        }
    }
}

fn find<'a>(readings: &'a [Rival], name: &str, services: u32) -> Option<&'a Rival> {
    readings
        .iter()
        .find(|rival| rival.name == name && rival.services == services)
}

fn median(changes: &[RivalChange], value: fn(&RivalChange) -> f64) -> f64 {
    let mut values: Vec<f64> = changes.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "kibibytes and bytes far below 2^52"
)]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use guest_wire::report::Memory;

    use super::*;

    fn rival(name: &str, factor: f64) -> Rival {
        Rival {
            name: name.to_owned(),
            services: JUDGED,
            endpoints: 10,
            start: factor,
            restart: factor,
            changes: vec![RivalChange {
                seconds: factor,
                cpu: factor,
            }],
            memory: Memory {
                resident_kib: 1_000 * u64::from(factor > 1.0) + 100,
                peak_kib: 2_000,
            },
            requests: factor,
            bytes: 1_000 + u64::from(factor > 1.0),
            churn: None,
        }
    }

    #[test]
    fn what_is_far_ahead_misses_nothing_and_a_rival_as_good_as_ours_misses_three() {
        let ahead = [
            rival(OURS, 1.0),
            rival(RIVALS[0], 3_000.0),
            rival(RIVALS[1], 3_000.0),
        ];
        assert_eq!(missed(&ahead), Vec::<String>::new());
        let even = [rival(OURS, 1.0), rival(RIVALS[0], 1.0)];
        let names: Vec<String> = missed(&even);
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[0].starts_with("start to all programmed"));
    }

    #[test]
    fn a_lag_of_more_than_a_second_is_a_miss_and_stands_in_the_table() {
        let churn = Churn {
            seconds: 60.0,
            changes: 6_000,
            replaced: 60_000.0,
            cpu: 6.0,
            given: 0.5,
            eager: 3.0,
            lags: vec![0.1, 1.5],
        };
        let readings = [Rival {
            churn: Some(churn),
            ..rival(OURS, 1.0)
        }];
        assert_eq!(missed(&readings).len(), 1);
        let table = table(&readings);
        assert!(
            table.contains(
                "5.0 % of a core (10.0 by the guest's clock), a bare loop that deletes at once 5.0; lag 1.500 s"
            ),
            "{table}"
        );
    }
}
