//! `cargo bench -p benches --bench netlink`: measures encoding and decoding of the kernel's messages.
//!
//! Each bench has a baseline that copies or reads the same bytes without interpreting them.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ipvs_netlink::{Family, codec};
use netlink_pipeline::{Batch, Limits, Request, datagrams};

#[path = "inputs/wire.rs"]
mod wire;

use wire::{FAMILY, answer_destination, answer_service, commands};

/// Encodes one message for each of [`commands`] into datagrams; the baseline copies the same payloads.
fn encode(criterion: &mut Criterion) {
    let commands = commands();
    let finished = codec::encode(&commands, FAMILY, Limits::default(), 1);
    let payloads = payloads(&finished);
    let mut group = criterion.benchmark_group("encode a cold load");
    group.throughput(Throughput::Elements(
        u64::try_from(commands.len()).unwrap_or(0),
    ));
    group.bench_function("commands", |bencher| {
        bencher.iter(|| codec::encode(black_box(&commands), FAMILY, Limits::default(), 1));
    });
    group.bench_function("floor: payloads made before", |bencher| {
        let mut batch = Batch::new();
        for payload in &payloads {
            batch.push(Request::new(FAMILY, 0), payload);
        }
        bencher.iter(|| {
            batch.rewind();
            datagrams(black_box(&mut batch), Limits::default(), 1)
        });
    });
    group.bench_function("floor: one copy of the bytes", |bencher| {
        let bytes = finished.concat();
        bencher.iter(|| black_box(&bytes).clone());
    });
    group.finish();
}

/// Returns the payload behind the netlink header of every message.
fn payloads(finished: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let messages = finished
        .iter()
        .flat_map(|bytes| netlink_pipeline::Messages::new(bytes));
    messages
        .filter_map(|message| message.ok().map(|message| message.payload.to_vec()))
        .collect()
}

/// Decodes one entry of a dump; the baseline reads each of its bytes once.
fn decode(criterion: &mut Criterion) {
    let destination = answer_destination();
    let service = answer_service();
    let mut group = criterion.benchmark_group("decode a dump's entry");
    group.bench_function("real server", |bencher| {
        bencher.iter(|| codec::decode_destination(black_box(&destination), Family::V4));
    });
    group.bench_function("virtual server", |bencher| {
        bencher.iter(|| codec::decode_service(black_box(&service)));
    });
    for (name, bytes) in [("real server", &destination), ("virtual server", &service)] {
        let id = BenchmarkId::new("floor: every byte read once", name);
        group.bench_function(id, |bencher| {
            bencher.iter(|| black_box(bytes).iter().fold(0_u8, |sum, byte| sum ^ byte));
        });
    }
    group.finish();
}

/// Checks that the generated answers equal those of the kernel.
fn check(_: &mut Criterion) {
    let destination = codec::decode_destination(&answer_destination(), Family::V4);
    assert!(
        destination.is_ok_and(|entry| entry.destination.weight == 93)
            && answer_destination().len() == 340,
        "the made-up real server is not what the kernel sends"
    );
    let service = codec::decode_service(&answer_service());
    assert!(
        service.is_ok_and(|entry| entry.service.scheduler == "wrr")
            && answer_service().len() == 304,
        "the made-up virtual server is not what the kernel sends"
    );
}

criterion_group!(benches, check, encode, decode);
criterion_main!(benches);
