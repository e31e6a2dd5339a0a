//! Compares the requests of `ipvsadm` with those of this crate.

use std::net::IpAddr;

use ipvs_netlink::{
    Command, Daemon, DaemonState, Destination, Family, Forward, Netmask, Protocol, Service,
    ServiceFlags, ServiceId, Timeouts, TunnelFlags, TunnelKind, codec,
};
use netlink_pipeline::{Attributes, Limits};

use crate::capture::{number, payload};
use crate::captures;
use crate::words::{id, real, tcp, tunnelled};

/// Every command of `capture.sh` that changes something, and its equivalent here.
fn meanings() -> Vec<(&'static str, Command)> {
    [services(), destinations(), changes(), the_rest()].concat()
}

fn services() -> Vec<(&'static str, Command)> {
    let flags = ServiceFlags::HASH_FALLBACK | ServiceFlags::HASH_PORT;
    let slash24 = Netmask::prefix(Family::V4, 24).unwrap();
    let slash64 = Netmask::prefix(Family::V6, 64).unwrap();
    let mark = |family, mark| ServiceId::firewall_mark(family, mark);
    let new = [
        (
            "-A -t 10.96.0.10:80 -s wrr",
            Service::new(tcp("10.96.0.10:80"), "wrr"),
        ),
        (
            "-A -u 10.96.0.10:53 -s rr -o",
            Service::new(id(Protocol::UDP, "10.96.0.10:53"), "rr")
                .with_flags(ServiceFlags::ONE_PACKET),
        ),
        (
            "-A --sctp-service 10.96.0.10:9 -s rr",
            Service::new(id(Protocol::SCTP, "10.96.0.10:9"), "rr"),
        ),
        (
            "-A -t 10.96.0.11:443 -s sh -b sh-fallback,sh-port",
            Service::new(tcp("10.96.0.11:443"), "sh").with_flags(flags),
        ),
        (
            "-A -t 10.96.0.12:443 -s mh -b flag-1,flag-2,flag-3 -p 360 -M 255.255.255.0",
            Service::new(tcp("10.96.0.12:443"), "mh")
                .with_flags(flags | ServiceFlags::SCHEDULER_3)
                .with_persistence(360)
                .with_netmask(slash24),
        ),
        (
            "-A -u 10.96.0.13:5060 -s rr -p 30 --pe sip",
            Service::new(id(Protocol::UDP, "10.96.0.13:5060"), "rr")
                .with_persistence(30)
                .with_persistence_engine("sip"),
        ),
        ("-A -f 7 -s wrr", Service::new(mark(Family::V4, 7), "wrr")),
        (
            "-A -f 8 -6 -s wrr -p 60 -M 64",
            Service::new(mark(Family::V6, 8), "wrr")
                .with_persistence(60)
                .with_netmask(slash64),
        ),
        (
            "-A -t [2001:db8::a]:443 -s wrr",
            Service::new(tcp("[2001:db8::a]:443"), "wrr"),
        ),
        (
            "-A -t 10.96.0.99:80 -s nonsense",
            Service::new(tcp("10.96.0.99:80"), "nonsense"),
        ),
    ];
    new.map(|(words, service)| (words, Command::NewService(service)))
        .to_vec()
}

/// A service, a destination of it, and the arguments of `ipvsadm`.
type Line = (&'static str, ServiceId, Destination);

fn destinations() -> Vec<(&'static str, Command)> {
    let lines = plain().into_iter().chain(tunnels());
    let new = lines.map(|(words, service, real)| (words, Command::NewDest(service, real)));
    new.collect()
}

fn plain() -> [Line; 6] {
    [
        (
            "-a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 96",
            tcp("10.96.0.10:80"),
            real("192.0.2.1:8080", 96),
        ),
        (
            "-a -t 10.96.0.77:80 -r 192.0.2.1:8080 -m",
            tcp("10.96.0.77:80"),
            real("192.0.2.1:8080", 1),
        ),
        (
            "-a -u 10.96.0.10:53 -r 192.0.2.3:53 -m -w 0 -x 1000 -y 800",
            id(Protocol::UDP, "10.96.0.10:53"),
            real("192.0.2.3:53", 0).with_thresholds(1000, 800),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.4:443 -g -w 65535",
            tcp("10.96.0.11:443"),
            real("192.0.2.4:443", 65535).with_forward(Forward::Route),
        ),
        (
            "-a -t [2001:db8::a]:443 -r [2001:db8::2]:8443 -m -w 10",
            tcp("[2001:db8::a]:443"),
            real("[2001:db8::2]:8443", 10),
        ),
        (
            "-a -f 7 -r 192.0.2.11:0 -g -w 5",
            ServiceId::firewall_mark(Family::V4, 7),
            real("192.0.2.11:0", 5).with_forward(Forward::Route),
        ),
    ]
}

fn tunnels() -> [Line; 7] {
    use TunnelFlags as Flags;
    use TunnelKind::{Gre, Gue, Ipip};
    let plain = Flags::default();
    let four = tcp("10.96.0.11:443");
    [
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.5:443 -i",
            four,
            tunnelled("192.0.2.5:443", Ipip, 0, plain),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.6:443 -i --tun-type gue --tun-port 6080",
            four,
            tunnelled("192.0.2.6:443", Gue, 6080, plain),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.7:443 -i --tun-type gue --tun-port 6081 --tun-csum",
            four,
            tunnelled("192.0.2.7:443", Gue, 6081, Flags::CHECKSUM),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.8:443 -i --tun-type gue --tun-port 6082 --tun-remcsum",
            four,
            tunnelled("192.0.2.8:443", Gue, 6082, Flags::REMOTE_CHECKSUM),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.9:443 -i --tun-type gre --tun-csum",
            four,
            tunnelled("192.0.2.9:443", Gre, 0, Flags::CHECKSUM),
        ),
        (
            "-a -t 10.96.0.11:443 -r [2001:db8::4]:443 -i",
            four,
            tunnelled("[2001:db8::4]:443", Ipip, 0, plain),
        ),
        (
            "-a -t [2001:db8::a]:443 -r 192.0.2.10:443 -i",
            tcp("[2001:db8::a]:443"),
            tunnelled("192.0.2.10:443", Ipip, 0, plain),
        ),
    ]
}

fn changes() -> Vec<(&'static str, Command)> {
    let web = tcp("10.96.0.10:80");
    let four = tcp("10.96.0.11:443");
    let six = tcp("[2001:db8::a]:443");
    vec![
        (
            "-E -t 10.96.0.10:80 -s rr -p 600",
            Command::SetService(Service::new(web, "rr").with_persistence(600)),
        ),
        (
            "-e -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 24 -x 50 -y 40",
            Command::SetDest(web, real("192.0.2.1:8080", 24).with_thresholds(50, 40)),
        ),
        (
            "-d -t 10.96.0.11:443 -r [2001:db8::4]:443",
            Command::DelDest(four, "[2001:db8::4]:443".parse().unwrap()),
        ),
        (
            "-d -t [2001:db8::a]:443 -r 192.0.2.10:443",
            Command::DelDest(six, "192.0.2.10:443".parse().unwrap()),
        ),
        ("-D -t 10.96.0.10:80", Command::DelService(web)),
        ("-Z -t 10.96.0.11:443", Command::Zero(four)),
    ]
}

fn the_rest() -> Vec<(&'static str, Command)> {
    let timeouts = Timeouts {
        tcp: Some(900),
        tcp_fin: Some(120),
        udp: Some(300),
    };
    let mut backup = Daemon::new(DaemonState::Backup, "eth7", 8);
    backup.max_length = Some(1400);
    backup.group = Some(IpAddr::V6("ff02::81".parse().unwrap()));
    backup.port = Some(9999);
    backup.ttl = Some(3);
    vec![
        ("--set 900 120 300", Command::SetTimeouts(timeouts)),
        (
            "--start-daemon master --mcast-interface eth7 --syncid 7",
            Command::NewDaemon(Daemon::new(DaemonState::Primary, "eth7", 7)),
        ),
        (
            "--start-daemon backup --mcast-interface eth7 --syncid 8 --sync-maxlen 1400 \
             --mcast-group ff02::81 --mcast-port 9999 --mcast-ttl 3",
            Command::NewDaemon(backup),
        ),
        (
            "--stop-daemon backup",
            Command::DelDaemon(DaemonState::Backup),
        ),
        (
            "--stop-daemon master",
            Command::DelDaemon(DaemonState::Primary),
        ),
        ("-Z", Command::ZeroAll),
        ("-C", Command::Flush),
    ]
}

#[test]
fn every_request_of_ipvsadm_is_decoded_to_its_command() {
    for capture in captures() {
        for (words, command) in meanings() {
            let step = capture.step(&format!("ipvsadm {words}"));
            let request = step.requests.last().unwrap();
            let read = codec::decode_command(payload(request)).unwrap();
            assert_eq!(read.as_ref(), Some(&command), "{words}");
        }
    }
}

#[test]
fn no_captured_command_is_left_unchecked() {
    const READING: [&str; 3] = ["-L --timeout", "-Ln --stats", "-L --daemon"];
    let meanings = meanings();
    for capture in captures() {
        for step in &capture.steps {
            let words = step.command.strip_prefix("ipvsadm ").unwrap();
            let again = words == "-a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m";
            let known = meanings.iter().any(|(meant, _)| *meant == words);
            assert!(known || again || READING.contains(&words), "{words}");
        }
    }
}

/// `ipvsadm` also sends attributes that the kernel ignores: for example a whole service instead of its key.
#[test]
fn every_attribute_we_send_is_one_that_ipvsadm_sends_with_the_same_bytes() {
    for capture in captures() {
        for (words, command) in meanings() {
            let step = capture.step(&format!("ipvsadm {words}"));
            let theirs = step.requests.last().unwrap();
            let ours = codec::encode(std::slice::from_ref(&command), 0x22, Limits::default(), 1);
            let ours = &ours[0];
            assert_eq!(number(ours), number(theirs), "{words}");
            let (ours, theirs) = (&payload(ours)[4..], &payload(theirs)[4..]);
            assert_contains(words, theirs, ours);
        }
    }
}

#[test]
fn our_new_and_changed_services_are_ipvsadms_byte_for_byte() {
    for capture in captures() {
        for (words, command) in meanings() {
            if let Command::NewService(_) | Command::SetService(_) = command {
                let step = capture.step(&format!("ipvsadm {words}"));
                let ours = codec::encode(&[command], 0x22, Limits::default(), 1);
                assert_eq!(payload(&ours[0]), payload(step.requests.last().unwrap()));
            }
        }
    }
}

fn assert_contains(words: &str, theirs: &[u8], ours: &[u8]) {
    const NESTED: u16 = 0x8000;
    const ADDRESS: usize = 16;
    for attribute in Attributes::new(ours) {
        let attribute = attribute.unwrap();
        let mut candidates = Attributes::new(theirs).map(Result::unwrap);
        let found = candidates.find(|candidate| candidate.kind == attribute.kind);
        let Some(found) = found else {
            panic!(
                "{words}: ipvsadm does not send attribute {}",
                attribute.number()
            );
        };
        if attribute.kind & NESTED != 0 {
            assert_contains(words, found.value, attribute.value);
        } else if attribute.value.len() == ADDRESS && attribute.value[4..] == [0; 12] {
            // After an IPv4 address `ipvsadm` may leave old bytes in the field.
            assert_eq!(found.value[..4], attribute.value[..4], "{words}");
        } else {
            assert_eq!(
                found.value,
                attribute.value,
                "{words}: {}",
                attribute.number()
            );
        }
    }
}
