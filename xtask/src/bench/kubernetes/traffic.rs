//! Compares traffic through the proxies, and shows the kernel's own speed beside it.

use guest_wire::report::{PathReading, ProxyReport, Stall, TrafficReport};

use super::table::{BASELINES, NOTHING, OURS, find, size};
use crate::bench::median::median;
use crate::bench::table::aligned;

/// Values whose ratio is at least this count as equal. Readings of one path differ as much from round to round.
const EQUAL: f64 = 0.95;

#[derive(Clone, Copy)]
enum TrafficUnit {
    /// More is better.
    PerSecond,
    /// In seconds; less is better.
    Duration,
}

/// A figure of a path: name, unit, and how to read it.
type PathFigure = (&'static str, TrafficUnit, fn(&PathReading) -> f64);

const PATH_FIGURES: [PathFigure; 4] = [
    (
        "new connections per second",
        TrafficUnit::PerSecond,
        |reading| reading.connections,
    ),
    ("one connection, p50", TrafficUnit::Duration, |reading| {
        reading.p50
    }),
    ("one connection, p99", TrafficUnit::Duration, |reading| {
        reading.p99
    }),
    (
        "packets per second, established",
        TrafficUnit::PerSecond,
        |reading| reading.packets,
    ),
];

/// A figure of one proxy.
struct TrafficFigure {
    name: String,
    unit: TrafficUnit,
    value: f64,
    /// The same of IPVS alone and of routes alone, for paths.
    kernel: Option<[f64; 2]>,
}

impl TrafficFigure {
    /// Returns how many times as good as `other` it is.
    fn lead(&self, other: &Self) -> f64 {
        match self.unit {
            TrafficUnit::PerSecond => self.value / other.value,
            TrafficUnit::Duration => other.value / self.value,
        }
    }

    fn format(&self, value: f64) -> String {
        match self.unit {
            TrafficUnit::PerSecond => format!("{value:.0}"),
            TrafficUnit::Duration => format!("{:.2} ms", 1e3 * value),
        }
    }
}

/// Returns all figures of a proxy, always in the same order.
fn figures(traffic: &TrafficReport) -> Vec<TrafficFigure> {
    let mut figures = figures_with_target(traffic);
    figures.extend(stalls("nothing changes", &traffic.quiet));
    figures
}

/// Returns the figures in which the agent should be ahead or equal.
fn figures_with_target(traffic: &TrafficReport) -> Vec<TrafficFigure> {
    let paths = [
        ("cluster IP", &traffic.cluster_ip, &traffic.ipvs),
        ("node port", &traffic.node_port, &traffic.masqueraded),
    ];
    let mut figures = Vec::new();
    for (path, readings, ipvs) in paths {
        figures.extend(
            PATH_FIGURES
                .iter()
                .map(|(figure, unit, read)| TrafficFigure {
                    name: format!("{path}: {figure}"),
                    unit: *unit,
                    value: median(readings.iter().map(*read)),
                    kernel: Some(
                        [ipvs, &traffic.routed].map(|path| median(path.iter().map(*read))),
                    ),
                }),
        );
    }
    figures.extend(stalls("endpoints change", &traffic.changing));
    figures
}

fn stalls(when: &str, stall: &Stall) -> [TrafficFigure; 2] {
    let kinds = [("established", stall.established), ("new", stall.new)];
    kinds.map(|(kind, value)| TrafficFigure {
        name: format!("longest stall while {when}, {kind}"),
        unit: TrafficUnit::Duration,
        value,
        kernel: None,
    })
}

/// Returns a Markdown table for each size; `None` if no traffic was measured. A ratio above 1 is in the agent's favour.
pub(super) fn table(readings: &[ProxyReport]) -> Option<String> {
    let ours = readings.iter().filter(|proxy| proxy.name == OURS);
    let tables = ours.filter_map(|ours| Some(compare(readings, ours, ours.traffic.as_ref()?)));
    let tables: Vec<String> = tables.collect();
    (!tables.is_empty()).then(|| tables.join("\n"))
}

fn compare(readings: &[ProxyReport], ours: &ProxyReport, traffic: &TrafficReport) -> String {
    let services = format!("traffic, {} Services", size(ours));
    let [ipvs, nftables] = BASELINES;
    let head = [
        &services,
        OURS,
        ipvs,
        "ratio",
        nftables,
        "ratio",
        "IPVS alone",
        "routes alone",
    ];
    let baselines = BASELINES.map(|name| {
        let found = find(readings, name, ours.services);
        found.and_then(|proxy| proxy.traffic.as_ref()).map(figures)
    });
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (nth, own) in figures(traffic).iter().enumerate() {
        let mut cells = vec![own.name.clone(), own.format(own.value)];
        for baseline in &baselines {
            let other = baseline.as_ref().and_then(|figures| figures.get(nth));
            cells.extend(
                other.map_or([NOTHING.to_owned(), NOTHING.to_owned()], |other| {
                    [own.format(other.value), format!("{:.2}", own.lead(other))]
                }),
            );
        }
        cells.extend(own.kernel.map_or_else(
            || [NOTHING.to_owned(), NOTHING.to_owned()],
            |kernel| kernel.map(|value| own.format(value)),
        ));
        rows.push(cells);
    }
    aligned(&rows)
}

/// Returns one sentence for each row in which a proxy is ahead of the agent, and for failed connections.
pub(super) fn missed(readings: &[ProxyReport]) -> Vec<String> {
    let mut missed = Vec::new();
    for ours in readings.iter().filter(|proxy| proxy.name == OURS) {
        let Some(traffic) = &ours.traffic else {
            continue;
        };
        let paths = traffic.cluster_ip.iter().chain(&traffic.node_port);
        let failed: u32 = paths.map(|reading| reading.failed).sum();
        let failed = failed + traffic.changing.failed + traffic.quiet.failed;
        if failed > 0 {
            missed.push(format!("{failed} connections failed"));
        }
        let own = figures_with_target(traffic);
        for name in BASELINES {
            let found = find(readings, name, ours.services);
            let others = found
                .and_then(|proxy| proxy.traffic.as_ref())
                .map(figures_with_target);
            let pairs = own.iter().zip(others.into_iter().flatten());
            let behind = pairs.filter(|(own, other)| own.lead(other) < EQUAL);
            missed.extend(behind.map(|(own, other)| {
                let lead = own.lead(&other);
                format!("{}: ours is {lead:.2} times as good as {name}", own.name)
            }));
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use guest_wire::ServiceType;
    use guest_wire::report::ResidentMemory;

    use super::*;

    /// A proxy whose every figure is `factor` times as good as that of the kernel.
    fn proxy(name: &str, factor: f64) -> ProxyReport {
        let path = |factor| {
            vec![PathReading {
                connections: 1_000.0 * factor,
                p50: 0.001 / factor,
                p99: 0.002 / factor,
                packets: 8_000.0 * factor,
                failed: 0,
            }]
        };
        let stall = Stall {
            seconds: 5.0,
            established: 0.01 / factor,
            new: 0.02 / factor,
            failed: 0,
        };
        ProxyReport {
            name: name.to_owned(),
            services: 10_000,
            service_type: ServiceType::LoadBalancer,
            endpoints: 10,
            start: 1.0,
            restart: 1.0,
            changes: Vec::new(),
            memory: ResidentMemory::default(),
            requests: 1.0,
            bytes: 1,
            traffic: Some(TrafficReport {
                routed: path(2.0),
                ipvs: path(1.0),
                masqueraded: path(0.5),
                cluster_ip: path(factor),
                node_port: path(factor),
                quiet: stall,
                changing: stall,
                changed: 1_000,
            }),
            churn: None,
        }
    }

    #[test]
    fn a_ratio_above_one_is_in_our_favour_for_rates_and_for_times() {
        let readings = [
            proxy(OURS, 0.8),
            proxy(BASELINES[0], 0.4),
            proxy(BASELINES[1], 1.6),
        ];
        let text = table(&readings).unwrap();
        let cells = |name: &str| {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            let cells = line.split('|').map(|cell| cell.trim().to_owned());
            cells.collect::<Vec<_>>()[2..9].to_vec()
        };
        assert_eq!(
            cells("node port: new connections"),
            ["800", "400", "2.00", "1600", "0.50", "500", "2000"]
        );
        assert_eq!(
            cells("cluster IP: one connection, p50"),
            [
                "1.25 ms", "2.50 ms", "2.00", "0.62 ms", "0.50", "1.00 ms", "0.50 ms"
            ]
        );
        assert!(text.starts_with("| traffic, 10,000 LoadBalancer Services "));
        assert!(
            !missed(&readings)
                .iter()
                .any(|text| text.contains(BASELINES[0]))
        );
        assert_eq!(missed(&readings).len(), 10);
    }

    #[test]
    fn an_equal_proxy_is_no_miss_and_a_failed_connection_is_one() {
        let mut readings = [proxy(OURS, 0.98), proxy(BASELINES[0], 1.0)];
        assert_eq!(missed(&readings), Vec::<String>::new());
        if let Some(traffic) = &mut readings[0].traffic {
            traffic.changing.failed = 3;
        }
        assert_eq!(missed(&readings), ["3 connections failed"]);
    }

    #[test]
    fn without_traffic_there_is_no_table() {
        let readings = [ProxyReport {
            traffic: None,
            ..proxy(OURS, 1.0)
        }];
        assert_eq!(table(&readings), None);
        assert_eq!(missed(&readings), Vec::<String>::new());
    }
}
