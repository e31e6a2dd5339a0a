//! Every value that can be encoded decodes to the same value.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say what they expect by failing loudly"
)]

use std::net::{IpAddr, Ipv4Addr};

use ipvs_netlink::{
    Command, Daemon, DaemonState, Destination, Family, Forward, Netmask, Protocol, Service,
    ServiceFlags, ServiceId, Timeouts, Tunnel, TunnelFlags, TunnelKind, UnknownAttribute,
    UnknownAttributes, codec,
};
use netlink_pipeline::{Limits, Messages};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9_ä.-]{1,7}"
}

fn ids() -> impl Strategy<Value = ServiceId> {
    let address =
        (any::<u16>(), any::<IpAddr>(), any::<u16>()).prop_map(|(number, address, port)| {
            ServiceId::address(Protocol::new(number), address, port)
        });
    let mark = (families(), 1..=u32::MAX)
        .prop_map(|(family, mark)| ServiceId::firewall_mark(family, mark));
    prop_oneof![address, mark]
}

fn families() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::V4), Just(Family::V6)]
}

/// Attributes of future kernels, with any flag bits.
fn unknown() -> impl Strategy<Value = UnknownAttributes> {
    let attribute =
        (200_u16..0x3fff, 0_u16..4, vec(any::<u8>(), 0..50)).prop_map(|(number, flags, value)| {
            UnknownAttribute {
                kind: number | flags << 14,
                value: value.into(),
            }
        });
    vec(attribute, 0..4).prop_map(Into::into)
}

fn services() -> impl Strategy<Value = Service> {
    let netmask = (any::<Ipv4Addr>(), any::<u32>());
    let numbers = (any::<u32>(), any::<u32>());
    (
        ids(),
        name(),
        numbers,
        netmask,
        option::of(name()),
        unknown(),
    )
        .prop_map(
            |(id, scheduler, (flags, timeout), (mask, length), engine, unknown)| {
                let mut service = Service::new(id, scheduler);
                service.flags = ServiceFlags::from_bits(flags);
                service.timeout = timeout;
                service.netmask = match id.family() {
                    Family::V4 => Netmask::V4(mask),
                    Family::V6 => Netmask::V6(length),
                };
                service.persistence_engine = engine;
                service.unknown = unknown;
                service
            },
        )
}

fn forwards() -> impl Strategy<Value = Forward> {
    let kind = prop_oneof![
        Just(TunnelKind::Ipip),
        Just(TunnelKind::Gue),
        Just(TunnelKind::Gre),
        (3..=u8::MAX).prop_map(TunnelKind::Other),
    ];
    let tunnel = (kind, any::<u16>(), any::<u16>()).prop_map(|(kind, port, flags)| {
        let flags = TunnelFlags::from_bits(flags);
        Forward::Tunnel(Tunnel { kind, port, flags })
    });
    prop_oneof![
        Just(Forward::Masquerade),
        Just(Forward::Local),
        Just(Forward::Route),
        Just(Forward::Bypass),
        tunnel,
        (5..=u32::MAX).prop_map(Forward::Other),
    ]
}

fn destinations() -> impl Strategy<Value = Destination> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>());
    (
        any::<IpAddr>(),
        any::<u16>(),
        forwards(),
        numbers,
        unknown(),
    )
        .prop_map(
            |(address, port, forward, (weight, upper, lower), unknown)| {
                let mut destination = Destination::new(address, port, weight)
                    .with_forward(forward)
                    .with_thresholds(upper, lower);
                destination.unknown = unknown;
                destination
            },
        )
}

fn daemon_states() -> impl Strategy<Value = DaemonState> {
    prop_oneof![
        Just(DaemonState::Primary),
        Just(DaemonState::Backup),
        (3..=u32::MAX).prop_map(DaemonState::Other),
    ]
}

fn daemons() -> impl Strategy<Value = Daemon> {
    let options = (option::of(any::<u16>()), option::of(any::<IpAddr>()));
    let more = (option::of(any::<u16>()), option::of(any::<u8>()), unknown());
    (daemon_states(), name(), any::<u32>(), options, more).prop_map(
        |(state, interface, sync_id, (length, group), (port, ttl, unknown))| {
            let mut daemon = Daemon::new(state, interface, sync_id);
            daemon.max_length = length;
            daemon.group = group;
            daemon.port = port;
            daemon.ttl = ttl;
            daemon.unknown = unknown;
            daemon
        },
    )
}

fn commands() -> impl Strategy<Value = Command> {
    let seconds = || option::of(any::<u32>());
    let timeouts = (seconds(), seconds(), seconds())
        .prop_map(|(tcp, tcp_fin, udp)| Command::SetTimeouts(Timeouts { tcp, tcp_fin, udp }));
    prop_oneof![
        services().prop_map(Command::NewService),
        services().prop_map(Command::SetService),
        ids().prop_map(Command::DelService),
        (ids(), destinations()).prop_map(|(id, real)| Command::NewDest(id, real)),
        (ids(), destinations()).prop_map(|(id, real)| Command::SetDest(id, real)),
        (ids(), destinations()).prop_map(|(id, real)| Command::DelDest(id, real.id())),
        ids().prop_map(Command::Zero),
        Just(Command::ZeroAll),
        timeouts,
        Just(Command::Flush),
        daemons().prop_map(Command::NewDaemon),
        daemon_states().prop_map(Command::DelDaemon),
    ]
}

/// The payloads of the messages for these commands.
fn payloads(commands: &[Command]) -> Vec<Vec<u8>> {
    let datagrams = codec::encode(commands, 0x22, Limits::default(), 1);
    let messages = datagrams
        .iter()
        .flat_map(|datagram| Messages::new(datagram));
    messages.map(|m| m.unwrap().payload.to_vec()).collect()
}

proptest! {
    #[test]
    fn encoded_commands_decode_to_the_same(commands in vec(commands(), 0..20)) {
        let read: Vec<_> = payloads(&commands)
            .iter()
            .map(|payload| codec::decode_command(payload).unwrap().unwrap())
            .collect();
        prop_assert_eq!(read, commands);
    }

    /// A kernel's reply has the attributes of the request that created the object, and more.
    #[test]
    fn encoded_services_decode_to_the_same(service in services()) {
        let payload = payloads(&[Command::NewService(service.clone())]).remove(0);
        let entry = codec::decode_service(&payload).unwrap();
        prop_assert_eq!(entry.service, service);
    }

    #[test]
    fn encoded_destinations_decode_to_the_same(id in ids(), real in destinations()) {
        let payload = payloads(&[Command::NewDest(id, real.clone())]).remove(0);
        let entry = codec::decode_destination(&payload, id.family()).unwrap();
        prop_assert_eq!(entry.destination, real);
    }

    #[test]
    fn encoded_daemons_decode_to_the_same(daemon in daemons()) {
        let payload = payloads(&[Command::NewDaemon(daemon.clone())]).remove(0);
        prop_assert_eq!(codec::decode_daemon(&payload).unwrap(), daemon);
    }

    /// Truncated bytes decode to an error or another value, without a panic.
    #[test]
    fn truncated_answers_are_refused_without_a_panic(command in commands(), at in any::<prop::sample::Index>()) {
        let payload = payloads(&[command]).remove(0);
        let cut = &payload[..at.index(payload.len())];
        drop(codec::decode_command(cut));
        drop(codec::decode_service(cut));
        drop(codec::decode_destination(cut, Family::V6));
        drop(codec::decode_daemon(cut));
    }
}

#[test]
fn names_and_marks_that_the_kernel_would_misread_are_not_sent() {
    let id = ServiceId::address(Protocol::TCP, "10.0.0.1".parse().unwrap(), 80);
    let no_mark = ServiceId::firewall_mark(Family::V4, 0);
    let refused = [
        Command::NewService(Service::new(id, "")),
        Command::NewService(Service::new(id, "sixteen-bytes-xx")),
        Command::SetService(Service::new(id, "r\0r")),
        Command::NewService(Service::new(id, "rr").with_persistence_engine("")),
        Command::NewDaemon(Daemon::new(DaemonState::Primary, "", 0)),
        Command::DelService(no_mark),
    ];
    assert_eq!(payloads(&refused), Vec::<Vec<u8>>::new());
}

#[test]
fn a_netmask_of_another_family_is_not_sent() {
    let service = |address: &str, mask| {
        let id = ServiceId::address(Protocol::TCP, address.parse().unwrap(), 80);
        Service::new(id, "rr").with_netmask(Netmask::host(mask))
    };
    let mark = ServiceId::firewall_mark(Family::V6, 7);
    let refused = [
        Command::NewService(service("10.0.0.1", Family::V6)),
        Command::SetService(service("fd00::1", Family::V4)),
        Command::NewService(Service::new(mark, "rr").with_netmask(Netmask::host(Family::V4))),
    ];
    assert_eq!(payloads(&refused), Vec::<Vec<u8>>::new());
    let sent = [
        Command::NewService(service("10.0.0.1", Family::V4)),
        Command::SetService(service("fd00::1", Family::V6)),
    ];
    assert_eq!(payloads(&sent).len(), 2);
}
