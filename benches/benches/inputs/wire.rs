//! Messages to and from the kernel for benches.

use std::net::{IpAddr, Ipv4Addr};

use ipvs_netlink::{Command, Destination, Protocol, Service, ServiceId};

/// An example: the kernel assigns the number of the IPVS family when its module is loaded.
pub(crate) const FAMILY: u16 = 0x22;
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
pub(crate) fn commands() -> Vec<Command> {
    let mut commands = Vec::new();
    for server in 0..SERVERS {
        commands.push(Command::NewService(Service::new(id(server), "wrr")));
        let reals = server * REALS..(server + 1) * REALS;
        commands.extend(reals.map(|number| Command::NewDest(id(server), real(number))));
    }
    commands
}

/// The payload of an answer to `IPVS_CMD_GET_DEST`, attribute by attribute as Linux 6.12 sends it (340 bytes).
pub(crate) fn answer_destination() -> Vec<u8> {
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
pub(crate) fn answer_service() -> Vec<u8> {
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

/// `IPVS_*_ATTR_STATS` and `IPVS_*_ATTR_STATS64` with only zeros.
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
