//! Replies of kernels.

use std::collections::BTreeSet;

use ipvs_netlink::{
    Command, DaemonState, DestinationEntry, Family, Protocol, ServiceEntry, ServiceFlags,
    ServiceId, codec,
};
use netlink_pipeline::Messages;

use crate::capture::{Capture, payload};
use crate::captures;

fn services(capture: &Capture) -> Vec<ServiceEntry> {
    const NEW_SERVICE: u8 = 1;
    let answers = &capture.step("ipvsadm -Ln --stats").answers;
    let answers = answers.iter().map(|message| payload(message));
    answers
        .filter(|payload| payload[0] == NEW_SERVICE)
        .map(|payload| codec::decode_service(payload).unwrap())
        .collect()
}

fn destinations(capture: &Capture) -> Vec<DestinationEntry> {
    const NEW_DEST: u8 = 5;
    let answers = &capture.step("ipvsadm -Ln --stats").answers;
    let answers = answers.iter().map(|message| payload(message));
    answers
        .filter(|payload| payload[0] == NEW_DEST)
        .map(|payload| codec::decode_destination(payload, Family::V4).unwrap())
        .collect()
}

fn service(capture: &Capture, id: &ServiceId) -> ServiceEntry {
    let mut services = services(capture).into_iter();
    services.find(|entry| entry.service.id == *id).unwrap()
}

#[test]
fn every_service_that_ipvsadm_made_is_read_with_its_options() {
    for capture in captures() {
        let mut asked = BTreeSet::new();
        for step in capture.steps.iter().filter(|step| !step.failed) {
            let command = codec::decode_command(payload(step.requests.last().unwrap()));
            if let Ok(Some(Command::NewService(service))) = command {
                asked.insert(service);
            }
        }
        // Changed later by `-E`.
        let changed = ServiceId::address(Protocol::TCP, "10.96.0.10".parse().unwrap(), 80);
        asked.retain(|service| service.id != changed);
        let read = services(&capture).into_iter().map(|entry| entry.service);
        let read: BTreeSet<_> = read.filter(|service| service.id != changed).collect();
        assert_eq!(asked, read);
        assert_eq!(read.len(), 8);
        assert_eq!(service(&capture, &changed).service.persistence(), Some(600));
    }
}

#[test]
fn every_destination_that_ipvsadm_made_is_read_with_its_options() {
    for capture in captures() {
        let mut asked = BTreeSet::new();
        for step in capture.steps.iter().filter(|step| !step.failed) {
            let command = codec::decode_command(payload(step.requests.last().unwrap()));
            match command {
                Ok(Some(Command::NewDest(_, real))) => asked.insert(real),
                // The change of the first one.
                Ok(Some(Command::SetDest(_, real))) => {
                    asked.retain(|other| other.id() != real.id());
                    asked.insert(real)
                }
                _ => true,
            };
        }
        let read = destinations(&capture);
        assert_eq!(read.len(), 12);
        let read: BTreeSet<_> = read.into_iter().map(|entry| entry.destination).collect();
        assert_eq!(asked, read);
    }
}

#[test]
fn the_64_bit_counters_of_three_real_connections_are_read() {
    for capture in captures() {
        let id = ServiceId::address(Protocol::TCP, "10.96.0.10".parse().unwrap(), 80);
        let stats = service(&capture, &id).stats;
        assert_eq!(stats.connections, 3);
        assert!(stats.in_packets >= 12 && stats.in_bytes > 400, "{stats:?}");
        assert!(
            stats.out_packets >= 12 && stats.out_bytes > 400,
            "{stats:?}"
        );
        let web = "192.0.2.1:8080".parse().unwrap();
        let destinations = destinations(&capture);
        let entry = destinations.iter().find(|e| e.destination.id() == web);
        let entry = entry.unwrap();
        assert_eq!(entry.stats.connections, 3);
        assert_eq!((entry.active, entry.inactive), (0, 3));
    }
}

#[test]
fn a_firewall_mark_of_ipv6_is_read_with_its_prefix_length() {
    for capture in captures() {
        let id = ServiceId::firewall_mark(Family::V6, 8);
        let service = service(&capture, &id).service;
        assert_eq!(service.netmask.prefix_length(), Some(64));
        assert!(service.flags.contains(ServiceFlags::PERSISTENT));
    }
}

#[test]
fn daemons_are_read_with_the_kernels_defaults() {
    for capture in captures() {
        let step = capture.step("ipvsadm -L --daemon");
        let daemon = |message: &Vec<u8>| codec::decode_daemon(payload(message)).unwrap();
        let [primary, backup] = [&step.answers[0], &step.answers[1]].map(daemon);
        assert_eq!(primary.state, DaemonState::Primary);
        assert_eq!((primary.interface.as_str(), primary.sync_id), ("eth7", 7));
        assert_eq!(primary.group, Some("224.0.0.81".parse().unwrap()));
        assert_eq!((primary.port, primary.ttl), (Some(8848), Some(1)));
        assert_eq!(backup.state, DaemonState::Backup);
        assert_eq!(backup.group, Some("ff02::81".parse().unwrap()));
        assert_eq!(backup.max_length, Some(1400));
        assert_eq!((backup.port, backup.ttl), (Some(9999), Some(3)));
        assert!(primary.unknown.is_empty() && backup.unknown.is_empty());
    }
}

#[test]
fn timeouts_and_version_are_read() {
    for capture in captures() {
        let step = capture.step("ipvsadm -L --timeout");
        let timeouts = codec::decode_timeouts(payload(&step.answers[0])).unwrap();
        let seconds = (timeouts.tcp, timeouts.tcp_fin, timeouts.udp);
        assert_eq!(seconds, (Some(900), Some(120), Some(300)));
        let step = capture.step("ipvsadm -A -t 10.96.0.10:80 -s wrr");
        let info = codec::decode_info(payload(&step.answers[0])).unwrap();
        assert_eq!(info.version_parts(), (1, 2, 1));
        // Linux 7 creates the table with the first service.
        let size = info.connection_table_size;
        assert!(size == 0 || size.is_power_of_two(), "{size}");
    }
}

#[test]
fn no_kernel_sends_an_attribute_without_a_name_here() {
    for capture in captures() {
        for entry in services(&capture) {
            assert!(entry.service.unknown.is_empty(), "{:?}", entry.service);
        }
        for entry in destinations(&capture) {
            assert!(
                entry.destination.unknown.is_empty(),
                "{:?}",
                entry.destination
            );
        }
    }
}

#[test]
fn every_refusal_carries_its_error_number() {
    const ERROR: u16 = 2;
    let refused = [
        ("ipvsadm -A -t 10.96.0.99:80 -s nonsense", libc::ENOENT),
        (
            "ipvsadm -a -t 10.96.0.77:80 -r 192.0.2.1:8080 -m",
            libc::ESRCH,
        ),
        (
            "ipvsadm -a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m",
            libc::EEXIST,
        ),
    ];
    for capture in captures() {
        for (words, errno) in refused {
            let step = capture.step(words);
            assert!(step.failed, "{words}");
            let message = Messages::new(&step.answers[0]).next().unwrap().unwrap();
            assert_eq!(message.kind, ERROR);
            let number = i32::from_ne_bytes(*message.payload.first_chunk().unwrap());
            assert_eq!(-number, errno, "{words}");
        }
    }
}
