//! Every option of `ipvsadm`, with the equivalent of this crate.

use ipvs_netlink::{
    Command, Destination, Family, Forward, Netmask, Protocol, Service, ServiceFlags, ServiceId,
    TunnelFlags, TunnelKind,
};

use crate::words::{id, real, tcp, tunnelled};

/// One line of `ipvsadm -S -n`.
pub(crate) struct Row {
    /// The line as saved.
    pub(crate) saved: &'static str,
    /// Arguments that `ipvsadm -R` accepts and `-S` omits.
    pub(crate) more: &'static str,
    pub(crate) meaning: Command,
}

/// All of them: services, then their destinations.
pub(crate) fn rows() -> Vec<Row> {
    let plain = |(saved, meaning)| Row {
        saved,
        more: "",
        meaning,
    };
    let services = services().into_iter().chain(more_services());
    let services = services.map(|(saved, service)| (saved, Command::NewService(service)));
    let real = |(saved, id, real)| (saved, Command::NewDest(id, real));
    let destinations = destinations().into_iter().chain(tunnels()).map(real);
    let limited = limited().into_iter().map(|(saved, more, id, real)| Row {
        saved,
        more,
        meaning: Command::NewDest(id, real),
    });
    services
        .chain(destinations)
        .map(plain)
        .chain(limited)
        .collect()
}

fn services() -> Vec<(&'static str, Service)> {
    let both = ServiceFlags::HASH_FALLBACK | ServiceFlags::HASH_PORT;
    vec![
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
            "-A --sctp-service 10.96.0.10:9 -s lc",
            Service::new(id(Protocol::SCTP, "10.96.0.10:9"), "lc"),
        ),
        (
            "-A -t 10.96.0.11:443 -s sh -b sh-fallback,sh-port",
            Service::new(tcp("10.96.0.11:443"), "sh").with_flags(both),
        ),
        (
            "-A -t 10.96.0.12:443 -s mh -b mh-port",
            Service::new(tcp("10.96.0.12:443"), "mh").with_flags(ServiceFlags::HASH_PORT),
        ),
        (
            "-A -t 10.96.0.12:444 -s rr -b flag-3",
            Service::new(tcp("10.96.0.12:444"), "rr").with_flags(ServiceFlags::SCHEDULER_3),
        ),
        (
            "-A -t 10.96.0.14:0 -s wlc -p 30",
            Service::new(tcp("10.96.0.14:0"), "wlc").with_persistence(30),
        ),
        (
            "-A -t [2001:db8::a]:443 -s wrr",
            Service::new(tcp("[2001:db8::a]:443"), "wrr"),
        ),
        (
            "-A -u [2001:db8::a]:53 -s rr -o",
            Service::new(id(Protocol::UDP, "[2001:db8::a]:53"), "rr")
                .with_flags(ServiceFlags::ONE_PACKET),
        ),
        (
            "-A --sctp-service [2001:db8::a]:9 -s rr",
            Service::new(id(Protocol::SCTP, "[2001:db8::a]:9"), "rr"),
        ),
    ]
}

fn more_services() -> Vec<(&'static str, Service)> {
    let slash24 = Netmask::prefix(Family::V4, 24).unwrap();
    let slash64 = Netmask::prefix(Family::V6, 64).unwrap();
    vec![
        (
            "-A -t 10.96.0.13:80 -s rr -p 360 -M 255.255.255.0",
            Service::new(tcp("10.96.0.13:80"), "rr")
                .with_persistence(360)
                .with_netmask(slash24),
        ),
        (
            "-A -t [2001:db8::b]:80 -s rr -p 60 -M 64",
            Service::new(tcp("[2001:db8::b]:80"), "rr")
                .with_persistence(60)
                .with_netmask(slash64),
        ),
        (
            "-A -u 10.96.0.13:5060 -s rr -p 30 --pe sip",
            Service::new(id(Protocol::UDP, "10.96.0.13:5060"), "rr")
                .with_persistence(30)
                .with_persistence_engine("sip"),
        ),
        (
            "-A -f 7 -s wrr",
            Service::new(ServiceId::firewall_mark(Family::V4, 7), "wrr"),
        ),
        (
            "-A -f 2147483647 -6 -s rr",
            Service::new(ServiceId::firewall_mark(Family::V6, 0x7fff_ffff), "rr"),
        ),
    ]
}

type Line = (&'static str, ServiceId, Destination);

fn destinations() -> Vec<Line> {
    let web = tcp("10.96.0.10:80");
    let six = tcp("[2001:db8::a]:443");
    vec![
        (
            "-a -t 10.96.0.10:80 -r 192.0.2.2:8080 -m -w 96",
            web,
            real("192.0.2.2:8080", 96),
        ),
        (
            "-a -t 10.96.0.10:80 -r 192.0.2.3:8080 -m -w 0",
            web,
            real("192.0.2.3:8080", 0),
        ),
        (
            "-a -t 10.96.0.10:80 -r 192.0.2.4:80 -g -w 2147483647",
            web,
            real("192.0.2.4:80", 2_147_483_647).with_forward(Forward::Route),
        ),
        (
            "-a -u 10.96.0.10:53 -r 192.0.2.2:5353 -m -w 1",
            id(Protocol::UDP, "10.96.0.10:53"),
            real("192.0.2.2:5353", 1),
        ),
        (
            "-a --sctp-service 10.96.0.10:9 -r 192.0.2.2:9 -m -w 1",
            id(Protocol::SCTP, "10.96.0.10:9"),
            real("192.0.2.2:9", 1),
        ),
        (
            "-a -t [2001:db8::a]:443 -r [2001:db8::2]:8443 -m -w 10",
            six,
            real("[2001:db8::2]:8443", 10),
        ),
        (
            "-a -t [2001:db8::a]:443 -r [2001:db8::3]:443 -g -w 10",
            six,
            real("[2001:db8::3]:443", 10).with_forward(Forward::Route),
        ),
        (
            "-a -f 7 -r 192.0.2.11:0 -m -w 5",
            ServiceId::firewall_mark(Family::V4, 7),
            real("192.0.2.11:0", 5),
        ),
        (
            "-a -f 2147483647 -6 -r [2001:db8::2]:0 -g -w 5",
            ServiceId::firewall_mark(Family::V6, 0x7fff_ffff),
            real("[2001:db8::2]:0", 5).with_forward(Forward::Route),
        ),
    ]
}

fn tunnels() -> Vec<Line> {
    use TunnelKind::{Gre, Gue, Ipip};
    let none = TunnelFlags::default();
    let service = tcp("10.96.0.11:443");
    let mixed = tcp("[2001:db8::a]:443");
    vec![
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.5:443 -i -w 1 --tun-type ipip",
            service,
            tunnelled("192.0.2.5:443", Ipip, 0, none),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.6:443 -i -w 1 --tun-type gue --tun-port 6080 --tun-nocsum",
            service,
            tunnelled("192.0.2.6:443", Gue, 6080, none),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.7:443 -i -w 1 --tun-type gue --tun-port 6081 --tun-csum",
            service,
            tunnelled("192.0.2.7:443", Gue, 6081, TunnelFlags::CHECKSUM),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.8:443 -i -w 1 --tun-type gue --tun-port 6082 --tun-remcsum",
            service,
            tunnelled("192.0.2.8:443", Gue, 6082, TunnelFlags::REMOTE_CHECKSUM),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.9:443 -i -w 1 --tun-type gre --tun-nocsum",
            service,
            tunnelled("192.0.2.9:443", Gre, 0, none),
        ),
        (
            "-a -t 10.96.0.11:443 -r 192.0.2.10:443 -i -w 1 --tun-type gre --tun-csum",
            service,
            tunnelled("192.0.2.10:443", Gre, 0, TunnelFlags::CHECKSUM),
        ),
        (
            "-a -t 10.96.0.11:443 -r [2001:db8::4]:443 -i -w 1 --tun-type ipip",
            service,
            tunnelled("[2001:db8::4]:443", Ipip, 0, none),
        ),
        (
            "-a -t [2001:db8::a]:443 -r 192.0.2.10:443 -i -w 1 --tun-type gre --tun-csum",
            mixed,
            tunnelled("192.0.2.10:443", Gre, 0, TunnelFlags::CHECKSUM),
        ),
    ]
}

fn limited() -> Vec<(&'static str, &'static str, ServiceId, Destination)> {
    vec![(
        "-a -t 10.96.0.10:80 -r 192.0.2.20:80 -m -w 3",
        "-x 1000 -y 800",
        tcp("10.96.0.10:80"),
        real("192.0.2.20:80", 3).with_thresholds(1000, 800),
    )]
}
