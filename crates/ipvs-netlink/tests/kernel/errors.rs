//! The kernel's errors and their meaning.

use ipvs_netlink::{
    Client, Command, Daemon, DaemonState, Destination, ErrorKind, Family, Forward, Netmask,
    Service, ServiceId, Tunnel, TunnelFlags, TunnelKind,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::support::{execute, link, real, tcp};

const WEB: &str = "10.96.0.10:80";
const NOWHERE: &str = "10.96.0.99:80";

/// A client of a table with one service and one destination.
fn client() -> Client {
    link();
    let mut client = Client::open().unwrap();
    execute(
        &mut client,
        &[
            Command::NewService(Service::new(tcp(WEB), "rr")),
            Command::NewDest(tcp(WEB), real("192.0.2.2:80", 1)),
        ],
    );
    client
}

fn refused(client: &mut Client, command: Command) -> ipvs_netlink::Error {
    let shown = format!("{command:?}");
    let mut results = client.execute(&[command]).unwrap();
    match results.remove(0) {
        Ok(()) => panic!("{shown} worked"),
        Err(error) => error,
    }
}

#[test]
fn each_refusal_has_its_kind() {
    let mut client = client();
    let to_web = |real| Command::NewDest(tcp(WEB), real);
    let other = "192.0.2.9:80".parse().unwrap();
    let cases = [
        (
            Command::NewService(Service::new(tcp(WEB), "rr")),
            ErrorKind::AlreadyExists,
        ),
        (to_web(real("192.0.2.2:80", 1)), ErrorKind::AlreadyExists),
        (
            Command::SetService(Service::new(tcp(NOWHERE), "rr")),
            ErrorKind::NoSuchService,
        ),
        (Command::DelService(tcp(NOWHERE)), ErrorKind::NoSuchService),
        (Command::Zero(tcp(NOWHERE)), ErrorKind::NoSuchService),
        (
            Command::NewDest(tcp(NOWHERE), real("192.0.2.2:80", 1)),
            ErrorKind::NoSuchService,
        ),
        (
            Command::SetDest(tcp(NOWHERE), real("192.0.2.2:80", 1)),
            ErrorKind::NoSuchService,
        ),
        (
            Command::DelDest(tcp(NOWHERE), other),
            ErrorKind::NoSuchService,
        ),
        (
            Command::SetDest(tcp(WEB), real("192.0.2.9:80", 1)),
            ErrorKind::NoSuchDestination,
        ),
        (
            Command::DelDest(tcp(WEB), other),
            ErrorKind::NoSuchDestination,
        ),
        (
            Command::NewService(Service::new(tcp(NOWHERE), "nonsense")),
            ErrorKind::UnknownScheduler,
        ),
        (
            Command::SetService(Service::new(tcp(WEB), "nonsense")),
            ErrorKind::UnknownScheduler,
        ),
        (
            Command::DelDaemon(DaemonState::Primary),
            ErrorKind::NoSuchDaemon,
        ),
        (
            Command::NewDaemon(Daemon::new(DaemonState::Primary, "nowhere0", 0)),
            ErrorKind::NoSuchInterface,
        ),
    ];
    for (command, kind) in cases {
        let shown = format!("{command:?}");
        assert_eq!(refused(&mut client, command).kind(), kind, "{shown}");
    }
}

#[test]
fn values_that_the_kernel_does_not_take_are_invalid() {
    let mut client = client();
    let gue_without_port = Forward::Tunnel(Tunnel {
        kind: TunnelKind::Gue,
        port: 0,
        flags: TunnelFlags::default(),
    });
    let mut no_prefix = Service::new(tcp("[2001:db8::a]:80"), "rr");
    no_prefix.netmask = Netmask::V6(129);
    let bad: [Destination; 6] = [
        real("192.0.2.3:80", 1).with_thresholds(10, 20),
        real("192.0.2.3:80", u32::MAX),
        real("224.0.0.1:80", 1),
        real("0.0.0.0:80", 1),
        real("[2001:db8::3]:80", 1),
        real("192.0.2.3:80", 1).with_forward(gue_without_port),
    ];
    for real in bad {
        let shown = format!("{real:?}");
        let error = refused(&mut client, Command::NewDest(tcp(WEB), real));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{shown}: {error}");
        assert!(error.errno().is_some());
    }
    let error = refused(&mut client, Command::NewService(no_prefix));
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_command_that_cannot_be_sent_is_invalid_and_does_not_stop_the_rest() {
    let mut client = client();
    let results = client
        .execute(&[
            Command::DelService(ServiceId::firewall_mark(Family::V4, 0)),
            Command::NewService(Service::new(tcp(NOWHERE), "far-too-long-a-name")),
            Command::NewService(Service::new(tcp(NOWHERE), "rr")),
        ])
        .unwrap();
    let kinds: Vec<_> = results
        .iter()
        .map(|r| r.as_ref().err().map(ipvs_netlink::Error::kind))
        .collect();
    assert_eq!(
        kinds,
        [Some(ErrorKind::Invalid), Some(ErrorKind::Invalid), None]
    );
    let text = results[1].as_ref().unwrap_err().to_string();
    assert_eq!(
        text,
        "cannot add service TCP 10.96.0.99:80: a scheduler's name has 1 to 15 bytes"
    );
}

#[test]
fn reading_a_missing_object_is_an_error() {
    let mut client = client();
    let service = client.service(&tcp(NOWHERE)).unwrap_err();
    assert_eq!(service.kind(), ErrorKind::NoSuchService);
    let destinations = client.destinations(&tcp(NOWHERE)).unwrap_err();
    assert_eq!(destinations.kind(), ErrorKind::NoSuchService);
    assert_eq!(destinations.service(), Some(tcp(NOWHERE)));
}

#[test]
fn texts_name_the_object_the_number_and_the_remedy() {
    let mut client = client();
    let unknown = Service::new(tcp(NOWHERE), "nonsense");
    let error = refused(&mut client, Command::NewService(unknown));
    assert_eq!(
        error.to_string(),
        "cannot add service TCP 10.96.0.99:80: unknown scheduler \"nonsense\" (errno 2); \
         load it: modprobe ip_vs_nonsense"
    );
    let twice = Command::NewDest(tcp(WEB), real("192.0.2.2:80", 1));
    let error = refused(&mut client, twice);
    assert_eq!(
        error.to_string(),
        "cannot add destination 192.0.2.2:80 of service TCP 10.96.0.10:80: \
         it exists already (errno 17)"
    );
    assert_eq!(error.destination(), Some("192.0.2.2:80".parse().unwrap()));
}

#[test]
fn without_the_capability_nothing_is_permitted_and_the_error_names_it() {
    let mut client = client();
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::NET_ADMIN);
    set_capabilities(None, sets).unwrap();
    let error = refused(&mut client, Command::Flush);
    assert_eq!(
        (error.kind(), error.errno()),
        (ErrorKind::NotPermitted, Some(1))
    );
    let text = error.to_string();
    assert!(text.contains("CAP_NET_ADMIN"), "{text}");
    let error = client.services().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPermitted);
    // A client opened now gets a smaller receive buffer and the same answers.
    let error = Client::open().unwrap().info().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPermitted);
}
