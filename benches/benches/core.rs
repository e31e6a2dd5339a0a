//! `cargo bench -p benches --bench core`: measures decisions, from a snapshot to weights.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use topology_core::quantise::{QuantiseMethod, quantise};

#[path = "inputs/deciding.rs"]
mod deciding;

use deciding::{Seen, crowded, hopeless, large, typical, worst};

/// Every Service of a cluster, as at start.
fn everything(criterion: &mut Criterion) {
    let seen = Seen::new(10_000, 10);
    let mut group = criterion.benchmark_group("resolve everything");
    group.sample_size(10);
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("10,000 Services, 100,000 endpoints", |bencher| {
        bencher.iter(|| seen.resolve());
    });
    group.finish();
}

/// Every Service with a node port, beside [`everything`]: the cost of each address of the node.
fn node_ports(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve 10,000 Services");
    group.sample_size(10);
    for (name, seen) in [
        ("ClusterIP only", Seen::new(10_000, 10)),
        ("node ports on 1 address", Seen::node_ports(10_000, 1)),
        ("node ports on 2 addresses", Seen::node_ports(10_000, 2)),
        ("node ports on 10 addresses", Seen::node_ports(10_000, 10)),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| seen.resolve()));
    }
    group.finish();
}

/// One Service, as after a change.
fn one(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("resolve one Service");
    let thousand = || Seen::new(1, 1_000);
    for (name, seen) in [
        ("10 endpoints", Seen::new(1, 10)),
        ("1,000 endpoints", thousand()),
        ("1,000 endpoints, overload capped", thousand().capped()),
        ("1,000 endpoints, a zone drained", thousand().draining(60)),
        ("1,000 endpoints, a drain half-way", thousand().draining(30)),
        ("1,000 endpoints, 100 capacities", thousand().uneven()),
        ("2,000 ports", Seen::new(1, 1).many_ports(2_000)),
    ] {
        group.bench_function(name, |bencher| bencher.iter(|| seen.resolve()));
    }
    group.finish();
}

/// Shares to integer weights.
fn weights(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("quantise");
    for (name, classes, stage) in [
        (
            "80, 15 and 5 % over 10 endpoints",
            typical(),
            QuantiseMethod::Exact,
        ),
        (
            "80, 15 and 5 % over 1,000 endpoints",
            large(),
            QuantiseMethod::Search,
        ),
        (
            "16 tiers, 5,000 endpoints",
            worst(),
            QuantiseMethod::Clamped,
        ),
        (
            "16 tiers, 5,000 endpoints, crowded",
            crowded(),
            QuantiseMethod::WideSearch,
        ),
        (
            "16 tiers, 5,000 endpoints, hopeless",
            hopeless(),
            QuantiseMethod::Clamped,
        ),
    ] {
        let found = quantise(&classes).method;
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

criterion_group!(benches, everything, node_ports, one, weights);
criterion_main!(benches);
