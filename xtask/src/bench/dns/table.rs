//! Compares the readings of the servers, and those of ours with the target.

use super::query::QueryKind;
use super::readings::{DnsComparison, LoadReadings, NameServerReadings};
use crate::bench::median::median;
use crate::bench::table::aligned;
use crate::thousands::thousands;

/// The most microseconds of CPU that our server may take for a query.
const TARGET: f64 = 50.0;

const OURS: &str = "ipvs-topo";

/// The unit of a rate, of which more is better; of all others less is.
const PER_SECOND: &str = "/s";

/// The name and the unit of a figure, and its value.
type LoadFigure = (&'static str, &'static str, fn(&LoadReadings) -> f64);

/// The figures of each kind of query.
const LOADS: [LoadFigure; 6] = [
    ("queries", PER_SECOND, |load| load.many.rate()),
    ("CPU for a query", "us", |load| load.many.cpu_per_query()),
    ("64 at a time, median", "us", |load| load.many.p50),
    ("64 at a time, 99 %", "us", |load| load.many.p99),
    ("one at a time, median", "us", |load| load.single.p50),
    ("one at a time, 99 %", "us", |load| load.single.p99),
];

/// Returns a Markdown table: for each size and figure the value of each server, and their ratio, which is above 1 if ours
/// is better.
pub(super) fn table(comparison: &DnsComparison) -> String {
    let coredns = format!("CoreDNS {}", comparison.coredns.trim_start_matches('v'));
    let head = ["Services", "figure", OURS, &coredns, "ratio"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for pair in comparison.readings.chunks(2) {
        let mut add = |figure: String, unit: &str, value: &dyn Fn(&NameServerReadings) -> f64| {
            let values: Vec<f64> = pair.iter().map(value).collect();
            let size = pair.first().map_or(0, |readings| readings.services);
            let size = format!("{} x {}", thousands(size), comparison.endpoints);
            let mut cells = vec![size, figure];
            cells.extend(values.iter().map(|value| cell(*value, unit)));
            if let [ours, theirs] = *values {
                let ratio = if unit == PER_SECOND {
                    ours / theirs
                } else {
                    theirs / ours
                };
                cells.push(format!("{ratio:.1}"));
            }
            rows.push(cells);
        };
        for query in QueryKind::ALL {
            for (figure, unit, value) in LOADS {
                add(format!("{}: {figure}", words(query)), unit, &|readings| {
                    of_query(readings, query, value)
                });
            }
        }
        add("start to the first answer".to_owned(), "ms", &|readings| {
            readings.start * 1e3
        });
        add(
            "an endpoint's change to the first answer, median".to_owned(),
            "ms",
            &|readings| median(readings.changes.iter().copied()) * 1e3,
        );
        let replaced = pair.first().map_or(0.0, |readings| readings.replaced);
        let rolling = format!("the same while {replaced:.0} endpoints a second are replaced");
        add(format!("{rolling}, median"), "ms", &|readings| {
            median(readings.changes_rolling.iter().copied()) * 1e3
        });
        add(format!("{rolling}, longest"), "ms", &|readings| {
            readings
                .changes_rolling
                .iter()
                .copied()
                .fold(f64::NAN, f64::max)
                * 1e3
        });
        add("resident memory".to_owned(), "MB", &megabytes);
    }
    aligned(&rows)
}

/// Returns one sentence for each kind of query that costs our server more than the target.
pub(super) fn missed(comparison: &DnsComparison) -> Vec<String> {
    let ours = comparison
        .readings
        .iter()
        .filter(|readings| readings.name == OURS);
    let costs = ours.flat_map(|readings| {
        QueryKind::ALL.map(|query| {
            let cpu = of_query(readings, query, |load| load.many.cpu_per_query());
            (readings.services, query, cpu)
        })
    });
    // A figure without readings is NaN, and missed.
    let missed = costs.filter(|(_, _, cpu)| cpu.is_nan() || *cpu > TARGET);
    missed
        .map(|(services, query, cpu)| {
            let services = thousands(services);
            format!(
                "{} at {services} Services: {cpu:.0} us of CPU, {TARGET} wanted",
                words(query)
            )
        })
        .collect()
}

fn words(query: QueryKind) -> &'static str {
    match query {
        QueryKind::ClusterIp => "cluster IP",
        QueryKind::Headless => "headless",
        QueryKind::NoSuchName => "no such name",
    }
}

fn of_query(
    readings: &NameServerReadings,
    query: QueryKind,
    value: fn(&LoadReadings) -> f64,
) -> f64 {
    let loads = readings.loads.iter().filter(|load| load.query == query);
    median(loads.map(value))
}

#[expect(clippy::cast_precision_loss, reason = "kibibytes far below 2^52")]
fn megabytes(readings: &NameServerReadings) -> f64 {
    readings.resident_kib as f64 * 1.024e-3
}

fn cell(value: f64, unit: &str) -> String {
    let digits = usize::from(value < 100.0);
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::readings::LoadReading;
    use super::*;

    fn readings(name: &str, factor: f64) -> NameServerReadings {
        let reading = LoadReading {
            queries: 100_000,
            seconds: factor,
            cpu: factor,
            p50: 20.0 * factor,
            p99: 90.0 * factor,
            lost: 0,
        };
        let loads = QueryKind::ALL.map(|query| LoadReadings {
            query,
            many: reading,
            single: reading,
        });
        NameServerReadings {
            name: name.to_owned(),
            services: 10_000,
            start: factor,
            resident_kib: 1_000,
            loads: loads.into(),
            changes: vec![0.001 * factor],
            changes_rolling: vec![0.003 * factor, 0.002 * factor],
            replaced: 998.6,
        }
    }

    fn comparison(ours: f64, theirs: f64) -> DnsComparison {
        DnsComparison {
            coredns: "v1.15.0".to_owned(),
            kubernetes: "v1.37.2".to_owned(),
            endpoints: 10,
            readings: vec![readings(OURS, ours), readings("CoreDNS", theirs)],
        }
    }

    #[test]
    fn values_are_beside_each_other_with_their_ratio() {
        let table = table(&comparison(1.0, 4.0));
        let line = |figure: &str| {
            let line = table.lines().find(|line| line.contains(figure)).unwrap();
            line.split('|')
                .map(|cell| cell.trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(line("headless: CPU")[3..6], ["10.0 us", "40.0 us", "4.0"]);
        assert_eq!(
            line("cluster IP: queries")[3..6],
            ["100000 /s", "25000 /s", "4.0"]
        );
        assert_eq!(
            line("first answer, median")[3..6],
            ["1.0 ms", "4.0 ms", "4.0"]
        );
        assert_eq!(
            line("while 999 endpoints a second are replaced, longest")[3..6],
            ["3.0 ms", "12.0 ms", "4.0"]
        );
        assert_eq!(line("Services")[4], "CoreDNS 1.15.0");
    }

    #[test]
    fn more_cpu_than_the_target_is_missed_and_so_is_no_reading() {
        assert_eq!(missed(&comparison(1.0, 40.0)), Vec::<String>::new());
        assert_eq!(missed(&comparison(40.0, 1.0)).len(), 3);
        let mut empty = comparison(1.0, 1.0);
        empty.readings[0].loads.clear();
        assert_eq!(missed(&empty).len(), 3);
    }
}
