//! Real connections: counters, destination counts, the connection table.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use ipvs_netlink::connections::{self, ConnectionEntry};
use ipvs_netlink::{Client, Command, DestinationEntry, Family, Protocol, Service, ServiceId};

use crate::support::{eventually, execute, feed, id, link, real, run, tcp};

/// Addresses and routes that make this host client, director and real server.
fn network() {
    link();
    run("ip", "route add local 10.96.0.0/16 dev lo");
    run("ip", "-6 route add local 2001:db8:1::/64 dev lo");
}

/// Accepts connections forever and keeps them open.
fn serve(address: &str) {
    let listener = TcpListener::bind(address).unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            kept.push(stream.unwrap());
        }
    });
}

fn one(client: &mut Client, id: ServiceId) -> DestinationEntry {
    client.destinations(&id).unwrap().remove(0)
}

/// The kernel's connection table, without duplicates: tests in other namespaces open connections at the same time.
fn table() -> Vec<ConnectionEntry> {
    let file = BufReader::new(File::open(connections::PATH).unwrap());
    let mut seen = HashSet::new();
    connections::read(file)
        .map(|item| item.unwrap().unwrap())
        .filter(|c: &ConnectionEntry| seen.insert((c.protocol, c.client, c.virtual_server)))
        .collect()
}

fn connect(client: &mut Client, virtual_server: &str, server: &str) -> (Vec<TcpStream>, ServiceId) {
    let id = tcp(virtual_server);
    execute(
        client,
        &[
            Command::NewService(Service::new(id, "rr")),
            Command::NewDest(id, real(server, 1)),
        ],
    );
    serve(server);
    let connect = |_| TcpStream::connect(virtual_server).unwrap();
    ((0..5).map(connect).collect(), id)
}

#[test]
fn connections_of_both_families_are_counted_and_listed() {
    network();
    let mut client = Client::open().unwrap();
    let pairs = [
        ("10.96.0.10:80", "192.0.2.1:8080"),
        ("[2001:db8:1::10]:80", "[2001:db8::1]:8080"),
    ];
    for (virtual_server, server) in pairs {
        let (streams, id) = connect(&mut client, virtual_server, server);
        let entry = one(&mut client, id);
        assert_eq!((entry.active, entry.inactive), (5, 0), "{virtual_server}");
        eventually("the destination's packets are counted", || {
            let stats = one(&mut client, id).stats;
            stats.connections == 5
                && stats.in_packets >= 10
                && stats.in_bytes >= 400
                && stats.out_packets >= 5
                && stats.out_bytes >= 200
        });
        eventually("the service's connections are counted", || {
            client.service(&id).unwrap().stats.connections == 5
        });
        for stream in &streams {
            let table = table();
            let source = stream.local_addr().unwrap();
            let found = table.iter().find(|connection| connection.client == source);
            let found = found.unwrap_or_else(|| panic!("{source} is not in the table"));
            assert_eq!(found.protocol, Protocol::TCP);
            assert_eq!(found.virtual_server, virtual_server.parse().unwrap());
            assert_eq!(found.destination, server.parse().unwrap());
            assert_eq!(
                (found.state.as_str(), &found.persistence),
                ("ESTABLISHED", &None)
            );
            assert!(
                found.expires > 800 && found.expires <= 900,
                "{}",
                found.expires
            );
        }
    }
    assert_eq!(table().len(), 10);
}

#[test]
fn zeroing_one_service_leaves_the_other() {
    network();
    let mut client = Client::open().unwrap();
    let (_kept, first) = connect(&mut client, "10.96.0.10:80", "192.0.2.1:8080");
    let (_kept, second) = connect(&mut client, "10.96.0.11:80", "192.0.2.1:8081");
    eventually("the connections are counted", || {
        [first, second].map(|id| one(&mut client, id).stats.connections) == [5, 5]
    });
    execute(&mut client, &[Command::Zero(first)]);
    assert_eq!(one(&mut client, first).stats.connections, 0);
    assert_eq!(one(&mut client, second).stats.connections, 5);
    execute(&mut client, &[Command::ZeroAll]);
    for (service, reals) in client.dump().unwrap() {
        assert_eq!(service.stats.connections, 0);
        assert_eq!(reals[0].stats.connections, 0);
        assert_eq!(reals[0].active, 5, "connections go on");
    }
}

#[test]
fn rates_are_read_while_connections_come() {
    network();
    let mut client = Client::open().unwrap();
    let (_kept, id) = connect(&mut client, "10.96.0.10:80", "192.0.2.1:8080");
    let mut more = Vec::new();
    eventually("the rates are not zero", || {
        more.push(TcpStream::connect("10.96.0.10:80").unwrap());
        let rates = client.service(&id).unwrap().stats.rates;
        rates.connections > 0 && rates.in_packets > 0 && rates.in_bytes > 0
    });
}

#[test]
fn persistence_entries_are_counted_and_listed() {
    network();
    let mut client = Client::open().unwrap();
    let id = tcp("10.96.0.10:80");
    let service = Service::new(id, "rr").with_persistence(100);
    let commands = [
        Command::NewService(service),
        Command::NewDest(id, real("192.0.2.1:8080", 1)),
    ];
    execute(&mut client, &commands);
    serve("192.0.2.1:8080");
    let _kept = TcpStream::connect("10.96.0.10:80").unwrap();
    assert_eq!(one(&mut client, id).persistent, 1);
    let table = table();
    assert_eq!(table.len(), 2);
    let entry = table.iter().find(|c| c.client.port() == 0).unwrap();
    let state = entry.state.as_str();
    assert!(["NONE", "ASSURED"].contains(&state), "{entry:?}");
    assert_eq!(entry.protocol, Protocol::TCP);
    assert_eq!(entry.virtual_server, "10.96.0.10:80".parse().unwrap());
}

#[test]
fn firewall_marks_schedule_connections() {
    network();
    feed(
        "nft",
        "-f -",
        "table inet marks {
            chain out {
                type route hook output priority mangle
                tcp dport 81 meta mark set 7
            }
        }",
    );
    let mut client = Client::open().unwrap();
    let id = ServiceId::firewall_mark(Family::V4, 7);
    let service = Service::new(id, "rr").with_persistence(100);
    let commands = [
        Command::NewService(service),
        Command::NewDest(id, real("192.0.2.1:0", 1)),
    ];
    execute(&mut client, &commands);
    serve("192.0.2.1:81");
    let _kept = TcpStream::connect("10.96.0.10:81").unwrap();
    eventually("the connection is counted", || {
        client.service(&id).unwrap().stats.connections == 1
    });
    let table = table();
    let entry = table
        .iter()
        .find(|c| c.protocol == Protocol::new(0))
        .unwrap();
    let mark: SocketAddr = "0.0.0.7:0".parse().unwrap();
    assert_eq!(entry.virtual_server, mark);
}

#[test]
fn udp_and_a_persistence_engine_are_listed() {
    network();
    let mut client = Client::open().unwrap();
    let id = id(Protocol::UDP, "10.96.0.10:5060");
    let service = Service::new(id, "rr")
        .with_persistence(100)
        .with_persistence_engine("sip");
    let commands = [
        Command::NewService(service),
        Command::NewDest(id, real("192.0.2.1:5060", 1)),
    ];
    execute(&mut client, &commands);
    let server = UdpSocket::bind("192.0.2.1:5060").unwrap();
    let caller = UdpSocket::bind("192.0.2.1:0").unwrap();
    let invite = "INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1\r\n\
                  Call-ID: 3848276298220188511@example.org\r\nCSeq: 1 INVITE\r\n\r\n";
    caller
        .send_to(invite.as_bytes(), "10.96.0.10:5060")
        .unwrap();
    let mut buffer = [0; 2000];
    let (length, _) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], invite.as_bytes());
    let table = table();
    let udp = table
        .iter()
        .filter(|connection| connection.protocol == Protocol::UDP);
    assert_eq!(udp.count(), 2, "{table:#?}");
    let engines: Vec<_> = table.iter().filter_map(|c| c.persistence.clone()).collect();
    let expected = "3848276298220188511@example.org";
    assert!(!engines.is_empty());
    for (name, data) in engines {
        assert_eq!((name.as_str(), data.as_str()), ("sip", expected));
    }
}

/// Only the current line is kept in memory, and split lines are reported.
#[test]
fn the_table_can_be_read_in_small_pieces() {
    network();
    let mut client = Client::open().unwrap();
    let (_kept, _) = connect(&mut client, "10.96.0.10:80", "192.0.2.1:8080");
    let whole = table();
    let slow = BufReader::with_capacity(7, File::open(connections::PATH).unwrap());
    let read: Vec<_> = connections::read(slow)
        .map(|c| c.unwrap().unwrap())
        .collect();
    let clients = |table: &[ConnectionEntry]| -> std::collections::BTreeSet<SocketAddr> {
        table.iter().map(|connection| connection.client).collect()
    };
    assert_eq!(clients(&read), clients(&whole));
    let mut text = String::new();
    File::open(connections::PATH)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let broken = text.replace("ESTABLISHED", "");
    let read = connections::read(broken.as_bytes()).map(Result::unwrap);
    let (malformed, good): (Vec<_>, Vec<_>) = read.partition(Result::is_err);
    assert!(malformed.len() >= 5 && good.is_empty(), "{text}");
}
