//! Compares the readings with those of the agent, and with targets.

use guest_wire::ServiceType;
use guest_wire::report::{Churn, ProxyReport};

use crate::bench::median::median;
use crate::bench::table::aligned;
use crate::thousands::thousands;

/// The agent's name.
pub(super) const OURS: &str = "ipvs-topo";

/// The names of the proxies that it is compared with.
pub(super) const BASELINES: [&str; 2] = ["kube-proxy ipvs", "kube-proxy nftables"];

/// A cell without a reading.
pub(super) const NOTHING: &str = "-";

/// The cluster size of the targets.
const TARGET_SIZE: u32 = 10_000;

pub(super) struct Row {
    pub(super) name: &'static str,
    unit: &'static str,
    /// The least ratio of the values of the baselines to the agent's.
    wanted: [f64; 2],
    pub(super) value: fn(&ProxyReport) -> f64,
}

pub(super) const ROWS: [Row; 7] = [
    Row {
        name: "start to all programmed",
        unit: "s",
        wanted: [20.0, 1.0],
        value: |proxy| proxy.start,
    },
    Row {
        name: "one endpoint, API write to traffic",
        unit: "s",
        wanted: [1.0; 2],
        value: |proxy| median(proxy.changes.iter().map(|change| change.seconds)),
    },
    Row {
        name: "CPU for it",
        unit: "s",
        wanted: [2_000.0; 2],
        value: |proxy| median(proxy.changes.iter().map(|change| change.cpu)),
    },
    Row {
        name: "restart",
        unit: "s",
        wanted: [1.0; 2],
        value: |proxy| proxy.restart,
    },
    Row {
        name: "resident memory",
        unit: "MB",
        wanted: [4.0; 2],
        value: |proxy| as_float(proxy.memory.resident_kib) * 1.024e-3,
    },
    Row {
        name: "requests until it is idle",
        unit: "",
        wanted: [1.0; 2],
        value: |proxy| proxy.requests,
    },
    Row {
        name: "bytes until it is idle",
        unit: "MB",
        wanted: [1.0; 2],
        value: |proxy| as_float(proxy.bytes) * 1e-6,
    },
];

/// Returns a Markdown table: for each size and figure the agent's value, and each baseline's value with its ratio.
pub(super) fn table(readings: &[ProxyReport]) -> String {
    let head = [
        "Services",
        "figure",
        OURS,
        BASELINES[0],
        "ratio",
        BASELINES[1],
        "ratio",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut sizes: Vec<u32> = readings.iter().map(|proxy| proxy.services).collect();
    sizes.dedup();
    for services in sizes {
        rows.extend(ROWS.iter().map(|row| row.cells(readings, services)));
        let ours = find(readings, OURS, services);
        rows.extend(ours.and_then(|ours| Some(rolling(ours, ours.churn.as_ref()?))));
    }
    aligned(&rows)
}

/// Returns the number of Services, with their type unless that is the usual one.
pub(super) fn size(report: &ProxyReport) -> String {
    let services = thousands(report.services);
    match report.service_type {
        ServiceType::ClusterIp => services,
        other => format!("{services} {other}"),
    }
}

/// Returns the row about rolling updates.
fn rolling(report: &ProxyReport, churn: &Churn) -> Vec<String> {
    let figure = format!("{:.0} endpoints/s for {:.0} s", rate(churn), churn.seconds);
    let used_text = format!(
        "{:.1} % of a core ({:.1} by the guest's clock), a bare loop that deletes at once {:.1}; lag {:.3} s",
        share(churn, used(churn)),
        share(churn, churn.cpu),
        share(churn, churn.immediate_delete),
        worst_lag(churn)
    );
    let mut cells = vec![size(report), figure, used_text];
    cells.resize(7, NOTHING.to_owned());
    cells
}

fn rate(churn: &Churn) -> f64 {
    churn.replaced / churn.seconds
}

/// Returns `cpu` in percent of a core.
fn share(churn: &Churn, cpu: f64) -> f64 {
    100.0 * cpu / churn.seconds
}

/// Returns the agent's CPU time. The guest's clock also counts time in which its processors waited for the host's.
fn used(churn: &Churn) -> f64 {
    churn.cpu * churn.cpu_share
}

fn worst_lag(churn: &Churn) -> f64 {
    churn.lags.iter().copied().fold(0.0, f64::max)
}

/// Returns whether there are readings of the agent and a baseline at the size of the targets.
pub(super) fn is_compared(readings: &[ProxyReport]) -> bool {
    let at_size = |name| find(readings, name, TARGET_SIZE).is_some();
    at_size(OURS) && BASELINES.into_iter().any(at_size)
}

/// Returns one sentence for each missed target.
pub(super) fn missed(readings: &[ProxyReport]) -> Vec<String> {
    let mut missed = Vec::new();
    let Some(ours) = find(readings, OURS, TARGET_SIZE) else {
        return missed;
    };
    for proxy in readings
        .iter()
        .filter(|proxy| proxy.services == TARGET_SIZE && proxy.name != OURS)
    {
        for row in &ROWS {
            let ratio = (row.value)(proxy) / (row.value)(ours);
            let wanted = row.wanted_of(&proxy.name);
            let reached = ratio >= wanted;
            if !reached {
                missed.push(format!(
                    "{} of {}: {ratio:.2} times ours, {wanted} wanted",
                    row.name, proxy.name
                ));
            }
        }
    }
    missed.extend(ours.churn.as_ref().and_then(missed_rolling));
    missed
}

fn missed_rolling(churn: &Churn) -> Option<String> {
    let (rate, lag) = (rate(churn), worst_lag(churn));
    let (used, immediate_delete) = (
        share(churn, used(churn)),
        share(churn, churn.immediate_delete),
    );
    let reached = used <= 30.0 && lag <= 1.0 && rate >= 950.0;
    (!reached).then(|| {
        format!(
            "rolling updates: {rate:.0} endpoints/s (1,000 wanted), lag {lag:.2} s (1), {used:.0} % of a core (30; a bare \
             loop that deletes at once: {immediate_delete:.0})"
        )
    })
}

impl Row {
    fn cells(&self, readings: &[ProxyReport], services: u32) -> Vec<String> {
        let ours = find(readings, OURS, services);
        let cell = |proxy: Option<&ProxyReport>| {
            proxy.map_or(NOTHING.to_owned(), |proxy| self.cell(proxy))
        };
        let any = readings.iter().find(|proxy| proxy.services == services);
        let size = any.map_or_else(String::new, size);
        let mut cells = vec![size, self.name.to_owned(), cell(ours)];
        for name in BASELINES {
            let proxy = find(readings, name, services);
            let ratio = proxy
                .zip(ours)
                .map(|(proxy, ours)| (self.value)(proxy) / (self.value)(ours));
            cells.push(cell(proxy));
            cells.push(ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.1}")));
        }
        cells
    }

    /// Formats the value with its unit.
    pub(super) fn cell(&self, proxy: &ProxyReport) -> String {
        let value = (self.value)(proxy);
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

    /// Returns the least ratio of the value of this baseline to the agent's.
    fn wanted_of(&self, baseline: &str) -> f64 {
        let mut wanted = BASELINES.into_iter().zip(self.wanted);
        let found = wanted.find(|(name, _)| *name == baseline);
        found.map_or(1.0, |(_, wanted)| wanted)
    }
}

pub(super) fn find<'a>(
    readings: &'a [ProxyReport],
    name: &str,
    services: u32,
) -> Option<&'a ProxyReport> {
    readings
        .iter()
        .find(|proxy| proxy.name == name && proxy.services == services)
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
    use guest_wire::report::{ProxyChange, ResidentMemory};

    use super::*;

    fn proxy(name: &str, factor: f64) -> ProxyReport {
        ProxyReport {
            name: name.to_owned(),
            services: TARGET_SIZE,
            service_type: ServiceType::ClusterIp,
            endpoints: 10,
            start: factor,
            restart: factor,
            changes: vec![ProxyChange {
                seconds: factor,
                cpu: factor,
            }],
            memory: ResidentMemory {
                resident_kib: 1_000 * u64::from(factor > 1.0) + 100,
                peak_kib: 2_000,
            },
            requests: factor,
            bytes: 1_000 + u64::from(factor > 1.0),
            traffic: None,
            churn: None,
        }
    }

    #[test]
    fn a_large_lead_misses_no_target_and_an_equal_rival_misses_three() {
        let ahead = [
            proxy(OURS, 1.0),
            proxy(BASELINES[0], 3_000.0),
            proxy(BASELINES[1], 3_000.0),
        ];
        assert_eq!(missed(&ahead), Vec::<String>::new());
        let even = [proxy(OURS, 1.0), proxy(BASELINES[0], 1.0)];
        let names: Vec<String> = missed(&even);
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[0].starts_with("start to all programmed"));
    }

    #[test]
    fn a_lag_of_more_than_a_second_is_a_miss_in_the_table() {
        let churn = Churn {
            seconds: 60.0,
            changes: 6_000,
            replaced: 60_000.0,
            cpu: 6.0,
            cpu_share: 0.5,
            immediate_delete: 3.0,
            lags: vec![0.1, 1.5],
        };
        let readings = [ProxyReport {
            churn: Some(churn),
            ..proxy(OURS, 1.0)
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
