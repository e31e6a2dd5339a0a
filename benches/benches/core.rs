//! `cargo bench -p benches --bench core`: what deciding costs, from a snapshot to weights.

use std::hint::black_box;

use benches::{Shape, write_cluster};
use cluster::source::{Options, read_text};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use topology_core::model::ObjectName;
use topology_core::quantise::{Class, Stage, quantise};
use topology_core::ratio::Ratio;
use topology_core::resolve::{Viewpoint, resolve};
use topology_core::snapshot::Snapshot;

/// The policy of the measured Services: three levels, so that every stage has work.
const WEIGHTS: &str = "node=80,zone=15,*=5";

fn snapshot(services: u32, endpoints: u32) -> Snapshot {
    let shape = Shape {
        services,
        endpoints,
        weights: Some(WEIGHTS.to_owned()),
        ..Shape::default()
    };
    let mut text = Vec::new();
    let written = write_cluster(&shape, &mut text);
    let loaded = written.map(|()| read_text("generated", &text, &Options::default()));
    match loaded {
        Ok(Ok(loaded)) => loaded.snapshot,
        other => unreachable!("a generated cluster is read without trouble: {other:?}"),
    }
}

fn names(snapshot: &Snapshot) -> Vec<ObjectName> {
    snapshot
        .services()
        .map(|service| service.name.clone())
        .collect()
}

/// Every Service of a cluster, as at start.
fn everything(criterion: &mut Criterion) {
    let snapshot = snapshot(10_000, 10);
    let names = names(&snapshot);
    let me = Viewpoint::new(Shape::default().node(0).name);
    let mut group = criterion.benchmark_group("resolve everything");
    group.sample_size(10);
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("10,000 Services, 100,000 endpoints", |bencher| {
        bencher.iter(|| {
            for name in &names {
                black_box(resolve(&snapshot, &me, name));
            }
        });
    });
    group.finish();
}

/// One Service, as after a change.
fn one(criterion: &mut Criterion) {
    let me = Viewpoint::new(Shape::default().node(0).name);
    let mut group = criterion.benchmark_group("resolve one Service");
    for endpoints in [10, 1_000] {
        let snapshot = snapshot(1, endpoints);
        let names = names(&snapshot);
        group.throughput(Throughput::Elements(u64::from(endpoints)));
        group.bench_function(format!("{endpoints} endpoints"), |bencher| {
            bencher.iter(|| {
                for name in &names {
                    black_box(resolve(&snapshot, &me, name));
                }
            });
        });
    }
    group.finish();
}

/// Shares to integer weights.
fn weights(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("quantise");
    for (name, classes, stage) in [
        ("80, 15 and 5 % over 10 endpoints", typical(), Stage::Exact),
        (
            "80, 15 and 5 % over 1,000 endpoints",
            large(),
            Stage::Search,
        ),
        ("16 tiers, 5,000 endpoints", worst(), Stage::Clamped),
    ] {
        let found = quantise(&classes).stage;
        assert_eq!(found, stage, "{name} does not measure what it says");
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || classes.clone(),
                |classes| quantise(black_box(&classes)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn typical() -> Vec<Class> {
    classes(&[(80, 1), (15, 3), (5, 6)])
}

fn large() -> Vec<Class> {
    classes(&[(80, 11), (15, 327), (5, 662)])
}

/// Tier after tier of coprime sizes whose shares fall from half of all traffic to a hundredth, so
/// that the search goes on to its end and finds nothing.
fn worst() -> Vec<Class> {
    let sizes = [
        1, 2, 3, 5, 7, 11, 13, 17, 199, 211, 307, 401, 503, 701, 809, 1_810,
    ];
    let percents = [50, 17, 9, 5, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1];
    let tiers: Vec<_> = percents.into_iter().zip(sizes).collect();
    classes(&tiers)
}

/// One class for each tier of (percent of the traffic, number of endpoints).
fn classes(tiers: &[(u64, u32)]) -> Vec<Class> {
    let class = |(tier, (percent, count)): (usize, &(u64, u32))| Class {
        tier,
        share: Ratio::new(*percent, 100 * u64::from(*count)),
        count: *count,
    };
    tiers.iter().enumerate().map(class).collect()
}

criterion_group!(benches, everything, one, weights);
criterion_main!(benches);
