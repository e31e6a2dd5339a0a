//! `ipvsadm` reads what this crate writes.

use ipvs_netlink::{Client, Command, Family, Forward, Service, ServiceFlags, ServiceId};

use crate::options::rows;
use crate::support::{assert_saved, execute, link, real, run, saved, tcp};

#[test]
fn every_option_we_write_is_read_by_ipvsadm() {
    link();
    let rows = rows();
    let commands: Vec<_> = rows.iter().map(|row| row.meaning.clone()).collect();
    execute(&mut Client::open().unwrap(), &commands);
    assert_saved(rows.iter().map(|row| row.saved));
    let thresholds = run("ipvsadm", "-L -n --thresholds");
    let line = thresholds
        .lines()
        .find(|line| line.contains("192.0.2.20:80"));
    let words: Vec<_> = line.unwrap().split_ascii_whitespace().collect();
    assert_eq!(words[..4], ["->", "192.0.2.20:80", "1000", "800"]);
}

#[test]
fn changed_services_and_destinations_are_read_by_ipvsadm() {
    link();
    let mut client = Client::open().unwrap();
    let web = tcp("10.96.0.10:80");
    let flags = ServiceFlags::HASH_PORT;
    execute(
        &mut client,
        &[
            Command::NewService(Service::new(web, "wrr").with_persistence(60)),
            Command::NewDest(web, real("192.0.2.2:80", 1)),
            Command::NewDest(web, real("192.0.2.3:80", 1)),
            Command::SetService(Service::new(web, "sh").with_flags(flags)),
            Command::SetDest(web, real("192.0.2.2:80", 7).with_forward(Forward::Route)),
        ],
    );
    let expected = [
        "-A -t 10.96.0.10:80 -s sh -b sh-port",
        "-a -t 10.96.0.10:80 -r 192.0.2.2:80 -g -w 7",
        "-a -t 10.96.0.10:80 -r 192.0.2.3:80 -m -w 1",
    ];
    assert_eq!(saved(), expected);
}

#[test]
fn a_changed_service_keeps_no_flag_that_was_not_requested() {
    let mut client = Client::open().unwrap();
    let web = tcp("10.96.0.10:80");
    let with_flags = Service::new(web, "sh")
        .with_flags(ServiceFlags::HASH_PORT)
        .with_persistence(5);
    let without = Service::new(web, "sh");
    execute(&mut client, &[Command::NewService(with_flags)]);
    execute(&mut client, &[Command::SetService(without.clone())]);
    assert_eq!(client.service(&web).unwrap().service, without);
    // The service is still in the table: its kernel-internal flag was not changed.
    assert_eq!(client.services().unwrap().len(), 1);
    execute(&mut client, &[Command::DelService(web)]);
    assert_eq!(client.services().unwrap().len(), 0);
}

#[test]
fn deletions_and_a_flush_keep_other_objects() {
    link();
    let mut client = Client::open().unwrap();
    let (web, other) = (tcp("10.96.0.10:80"), tcp("10.96.0.11:80"));
    execute(
        &mut client,
        &[
            Command::NewService(Service::new(web, "rr")),
            Command::NewDest(web, real("192.0.2.2:80", 1)),
            Command::NewDest(web, real("192.0.2.3:80", 1)),
            Command::NewService(Service::new(other, "rr")),
            Command::NewDest(other, real("192.0.2.2:80", 1)),
            Command::DelDest(web, "192.0.2.2:80".parse().unwrap()),
            Command::DelService(other),
        ],
    );
    let expected = [
        "-A -t 10.96.0.10:80 -s rr",
        "-a -t 10.96.0.10:80 -r 192.0.2.3:80 -m -w 1",
    ];
    assert_eq!(saved(), expected);
    execute(&mut client, &[Command::Flush]);
    assert_eq!(saved(), Vec::<String>::new());
}

#[test]
fn values_that_ipvsadm_cannot_express_are_kept_by_the_kernel() {
    link();
    let mut client = Client::open().unwrap();
    let web = tcp("10.96.0.10:80");
    // `ipvsadm` prints this one as -1.
    let mark = ServiceId::firewall_mark(Family::V6, u32::MAX);
    let mut odd = Service::new(web, "wrr").with_flags(ServiceFlags::from_bits(0x8000_0100));
    odd.netmask = ipvs_netlink::Netmask::V4("255.0.255.0".parse().unwrap());
    let bypass = real("192.0.2.2:80", 1).with_forward(Forward::Bypass);
    let local = real("192.0.2.1:80", 1).with_forward(Forward::Local);
    execute(
        &mut client,
        &[
            Command::NewService(odd.clone()),
            Command::NewDest(web, bypass.clone()),
            Command::NewDest(web, local.clone()),
            Command::NewService(Service::new(mark, "rr")),
        ],
    );
    assert_eq!(client.service(&mark).unwrap().service.id, mark);
    assert_eq!(client.service(&web).unwrap().service, odd);
    let read = client.destinations(&web).unwrap();
    let mut read: Vec<_> = read.into_iter().map(|entry| entry.destination).collect();
    read.sort();
    assert_eq!(read, [local, bypass]);
}

#[test]
fn unknown_attributes_of_newer_kernels_do_not_disturb_older_ones() {
    let mut client = Client::open().unwrap();
    let web = tcp("10.96.0.10:80");
    let mut service = Service::new(web, "rr");
    service.unknown = vec![ipvs_netlink::UnknownAttribute {
        kind: 999,
        value: Box::new([1, 2, 3]),
    }]
    .into();
    execute(&mut client, &[Command::NewService(service)]);
    assert_eq!(saved(), ["-A -t 10.96.0.10:80 -s rr"]);
}
