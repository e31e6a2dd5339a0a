//! SRV answers of headless Services with many ports and endpoints.

use hickory_proto::rr::RecordType;

use crate::cluster_of::{CLIENT, Dns};

/// What every client takes over UDP.
const LEAST_BYTES: u16 = 512;

/// The records that the shortest reply can have, and one more.
const MOST_OF_LEAST: usize = 47;

/// A headless Service `cart` with these ports, and endpoints with such hostnames.
fn cart(ports: impl Iterator<Item = String>, hostnames: impl Iterator<Item = &'static str>) -> Dns {
    let ports = ports.collect::<Vec<_>>().join(", ");
    let endpoints = hostnames.zip(1..).map(|(hostname, number)| {
        let hostname = match hostname {
            "" => String::new(),
            own => format!(", hostname: {own}"),
        };
        format!("{{addresses: [10.244.1.{number}]{hostname}}}")
    });
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    Dns::of(&format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: cart, namespace: shop}}
spec: {{clusterIP: None}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}
addressType: IPv4
ports: [{ports}]
endpoints: [{endpoints}]
"
    ))
}

/// So many ports with one number.
fn of_one_number(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|port| format!("{{name: p{port}, port: 80}}"))
}

/// The number of records and additional records in a reply of so many bytes, and whether there may be more.
fn counts(dns: &mut Dns, name: &str, most_bytes: u16) -> (usize, usize, bool) {
    let name = format!("{name}cart.shop.svc.cluster.local.");
    dns.most_bytes = most_bytes;
    let answer = dns.ask_from(CLIENT, &name, RecordType::SRV).unwrap();
    let records = (answer.records.len(), answer.additionals.len());
    (records.0, records.1, answer.is_partial)
}

#[test]
fn ports_of_one_number_leave_room_for_every_endpoint() {
    let mut dns = cart(of_one_number(8), std::iter::repeat_n("", 20));
    for name in ["", "_p3._tcp."] {
        assert_eq!(
            counts(&mut dns, name, LEAST_BYTES),
            (20, 20, false),
            "{name}"
        );
    }
}

#[test]
fn no_more_endpoints_are_looked_for_than_a_reply_can_have() {
    let most = MOST_OF_LEAST;
    let mut dns = cart(of_one_number(1), std::iter::repeat_n("", 100));
    for name in ["", "_p0._tcp."] {
        assert_eq!(
            counts(&mut dns, name, LEAST_BYTES),
            (most, most, true),
            "{name}"
        );
        assert_eq!(
            counts(&mut dns, name, u16::MAX),
            (100, 100, false),
            "{name}"
        );
    }
}

/// The reply is truncated, and the client gets all over TCP.
#[test]
fn records_that_were_not_looked_for_make_an_answer_partial() {
    let hostnames = std::iter::repeat_n("one", 100).chain(["two"]);
    let mut dns = cart(of_one_number(1), hostnames);
    let (records, _, is_partial) = counts(&mut dns, "", LEAST_BYTES);
    assert!(records <= 2 && is_partial, "{records}");
    assert_eq!(counts(&mut dns, "", u16::MAX), (2, 101, false));

    let other = "{name: other, port: 81}".to_owned();
    let mut dns = cart(of_one_number(1_000).chain([other]), [""].into_iter());
    assert_eq!(counts(&mut dns, "", LEAST_BYTES), (1, 1, true));
    assert_eq!(counts(&mut dns, "", u16::MAX), (2, 1, false));
    assert_eq!(counts(&mut dns, "_other._tcp.", LEAST_BYTES), (1, 1, false));
}
