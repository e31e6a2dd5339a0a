//! `cargo bench -p benches --bench yaml`: measures a start without an API server, from text to a snapshot.

use std::hint::black_box;

use benches::{Detail, Shape, write_cluster};
use cluster::source::{Options, read_text};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read YAML");
    group.sample_size(10);
    for (name, detail) in [
        ("1,000 Services x 10, the fields that decide", Detail::Lean),
        ("1,000 Services x 10, all that kubectl prints", Detail::Full),
    ] {
        let shape = Shape {
            detail,
            ..Shape::default()
        };
        let mut text = Vec::new();
        if let Err(error) = write_cluster(&shape, &mut text) {
            unreachable!("memory takes any text: {error}");
        }
        group.throughput(Throughput::Bytes(u64::try_from(text.len()).unwrap_or(0)));
        group.bench_function(name, |bencher| {
            bencher.iter(|| read_text("generated", black_box(&text), &Options::default()));
        });
        group.bench_function(format!("floor: lines of {name}"), |bencher| {
            bencher.iter(|| black_box(&text).split(|byte| *byte == b'\n').count());
        });
    }
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
