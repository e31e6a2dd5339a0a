//! Connection tables of kernels, captured by `connections.sh`.

use ipvs_netlink::connections::{self, ConnectionEntry};

/// The fields that are the same on each kernel: without the client's port and the remaining time.
const EXPECTED: [&str; 16] = [
    "0 192.0.2.1:0 0.0.0.7:0 192.0.2.1:0 ASSURED",
    "0 [2001:db8::1]:0 [0:7::]:0 [2001:db8::1]:0 ASSURED",
    "132 192.0.2.1 10.96.0.13:132 192.0.2.1:1320 ESTABLISHED",
    "132 2001:db8::1 [2001:db8:1::13]:132 [2001:db8::1]:1320 ESTABLISHED",
    "17 192.0.2.1 10.96.0.12:53 192.0.2.1:5353 UDP",
    "17 192.0.2.1 10.96.0.14:5060 192.0.2.1:5060 UDP",
    "17 192.0.2.1:0 10.96.0.14:5060 192.0.2.1:5060 NONE sip 7@example.org",
    "17 2001:db8::1 [2001:db8:1::12]:53 [2001:db8::1]:5353 UDP",
    "6 192.0.2.1 10.96.0.10:80 192.0.2.1:8080 ESTABLISHED",
    "6 192.0.2.1 10.96.0.11:80 192.0.2.1:8080 ESTABLISHED",
    "6 192.0.2.1 10.96.0.15:81 192.0.2.1:81 ESTABLISHED",
    "6 192.0.2.1:0 10.96.0.11:80 192.0.2.1:8080 ASSURED",
    "6 2001:db8::1 [2001:db8:1::10]:80 [2001:db8::1]:8080 ESTABLISHED",
    "6 2001:db8::1 [2001:db8:1::11]:80 [2001:db8::1]:8080 ESTABLISHED",
    "6 2001:db8::1 [2001:db8:1::15]:81 [2001:db8::1]:81 ESTABLISHED",
    "6 [2001:db8::1]:0 [2001:db8:1::11]:80 [2001:db8::1]:8080 ASSURED",
];

fn gist(connection: &ConnectionEntry) -> String {
    let client = connection.client;
    let client = match client.port() {
        0 => client.to_string(),
        _ => client.ip().to_string(),
    };
    let mut words = vec![
        connection.protocol.number().to_string(),
        client,
        connection.virtual_server.to_string(),
        connection.destination.to_string(),
        connection.state.clone(),
    ];
    if let Some((engine, data)) = &connection.persistence {
        words.extend([engine.clone(), data.clone()]);
    }
    words.join(" ")
}

#[test]
fn every_connection_of_a_kernel_is_read_correctly() {
    for capture in [
        include_str!("connections-6.1.txt"),
        include_str!("connections-6.12.txt"),
        include_str!("connections-sid.txt"),
    ] {
        let (release, table) = capture.split_once('\n').unwrap();
        let items: Vec<_> = connections::read(table.as_bytes())
            .map(|item| item.unwrap().unwrap())
            .collect();
        let mut gists: Vec<_> = items.iter().map(gist).collect();
        gists.sort();
        assert_eq!(gists, EXPECTED, "{release}");
        let left = items.iter().map(|connection| connection.expires);
        assert!(left.clone().all(|seconds| (200..=900).contains(&seconds)));
        let ports = items.iter().map(|connection| connection.client.port());
        assert_eq!(ports.filter(|port| *port > 1023).count(), 11, "{release}");
    }
}
