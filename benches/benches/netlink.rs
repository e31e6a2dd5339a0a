//! `cargo bench -p benches --bench netlink`: what it costs to write and read the kernel's messages.
//!
//! Each bench has a floor beside it that moves the same bytes and understands nothing.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ipvs_netlink::transport::{Batch, Limits, Request, datagrams};
use ipvs_netlink::{Command, Destination, Family, Protocol, Service, ServiceId, codec};

/// Any number does: the kernel gives one to the IPVS family when its module is loaded.
const FAMILY: u16 = 0x22;
/// Real servers of each virtual server.
const REALS: u32 = 10;
/// Virtual servers.
const SERVERS: u32 = 1_000;

fn id(server: u32) -> ServiceId {
    let address = Ipv4Addr::from_bits(0x0a60_0010 + server);
    ServiceId::address(Protocol::TCP, address.into(), 80)
}

fn real(number: u32) -> Destination {
    let address = Ipv4Addr::from_bits(0x0a80_0002 + number);
    Destination::new(address.into(), 8080, 1 + number % 100)
}

/// The commands of a cold load.
fn commands() -> Vec<Command> {
    let mut commands = Vec::new();
    for server in 0..SERVERS {
        commands.push(Command::NewService(Service::new(id(server), "wrr")));
        let reals = server * REALS..(server + 1) * REALS;
        commands.extend(reals.map(|number| Command::NewDest(id(server), real(number))));
    }
    commands
}

/// One message for each of [`commands`] into finished datagrams; against copying the same payloads into them.
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

/// What follows the netlink header of every message.
fn payloads(finished: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let messages = finished
        .iter()
        .flat_map(|bytes| ipvs_netlink::transport::Messages::new(bytes));
    messages
        .filter_map(|message| message.ok().map(|message| message.payload.to_vec()))
        .collect()
}

/// One entry of a dump into a value, as the kernel sends it; against reading each of its bytes once.
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

/// The payload of an answer to `IPVS_CMD_GET_DEST`, attribute by attribute as Linux 6.12 sends it (340 bytes).
fn answer_destination() -> Vec<u8> {
    let destination = [
        attribute(1, &address([10, 244, 1, 3].into())),
        attribute(2, &8080_u16.to_be_bytes()),
        attribute(3, &[0; 4]),
        attribute(4, &93_u32.to_ne_bytes()),
        attribute(13, &[0]),
        attribute(14, &[0; 2]),
        attribute(15, &[0; 2]),
        [5, 6, 7, 8, 9]
            .map(|kind| attribute(kind, &[0; 4]))
            .concat(),
        attribute(11, &2_u16.to_ne_bytes()),
        stats(),
    ];
    [vec![5, 1, 0, 0], attribute(2, &destination.concat())].concat()
}

/// The payload of an answer to `IPVS_CMD_GET_SERVICE` (304 bytes).
fn answer_service() -> Vec<u8> {
    let service = [
        attribute(1, &2_u16.to_ne_bytes()),
        attribute(2, &6_u16.to_ne_bytes()),
        attribute(3, &address([10, 96, 0, 10].into())),
        attribute(4, &80_u16.to_be_bytes()),
        attribute(6, b"wrr\0"),
        attribute(7, &[2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        attribute(8, &[0; 4]),
        attribute(9, &[0xff; 4]),
        stats(),
    ];
    [vec![1, 1, 0, 0], attribute(1, &service.concat())].concat()
}

/// `IPVS_*_ATTR_STATS` and `IPVS_*_ATTR_STATS64` of something that has done nothing yet.
fn stats() -> Vec<u8> {
    let narrow = (1..=10).map(|kind| match kind {
        4 | 5 => attribute(kind, &[0; 8]),
        _ => attribute(kind, &[0; 4]),
    });
    let wide = (1..=10).map(|kind| attribute(kind, &[0; 8]));
    [
        attribute(10, &narrow.collect::<Vec<_>>().concat()),
        attribute(12, &wide.collect::<Vec<_>>().concat()),
    ]
    .concat()
}

/// The union of addresses: 16 bytes, of which IPv4 fills the first four.
fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96).to_be_bytes(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// One netlink attribute with its padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The made-up answers must be what the kernel sends, else the bench measures nothing real.
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
