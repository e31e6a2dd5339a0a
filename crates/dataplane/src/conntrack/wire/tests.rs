//! Captures from a real kernel.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Linux 6.18, `ctnetlink` dump after a datagram from 127.0.0.1:40000 to 10.96.0.10:53 that nat sent
/// to 127.0.0.1:5353 (`conntrack -L` calls it `udp src=127.0.0.1 dst=10.96.0.10 sport=40000 dport=53
/// src=127.0.0.1 dst=127.0.0.1 sport=5353 dport=40000`).
const LISTED_V4: &str = "
    02000000
    34000180 14000180 08000100 7f000001 08000200 0a60000a
             1c000280 05000100 11000000 06000200 9c400000 06000300 00350000
    34000280 14000180 08000100 7f000001 08000200 7f000001
             1c000280 05000100 11000000 06000200 14e90000 06000300 9c400000
    08000300 000001a8 08000800 00000000 08000c00 2a8b03ed
    08000b00 00000001 08000700 0000001d";

/// The same for `fd00::1` port 40001 to `fd00::1` port 53, where no process answers.
const LISTED_V6: &str = "
    0a000000
    4c000180 2c000180 14000300 fd000000000000000000000000000001 14000400 fd000000000000000000000000000001
             1c000280 05000100 11000000 06000200 9c410000 06000300 00350000
    4c000280 2c000180 14000300 fd000000000000000000000000000001 14000400 fd000000000000000000000000000001
             1c000280 05000100 11000000 06000200 00350000 06000300 9c410000
    08000300 00000188 08000800 00000000 08000c00 6e18af22
    08000b00 00000001 08000700 0000001d";

#[test]
fn t01_a_listed_entry_names_the_service_and_the_server_behind_it() {
    let entry = parse(&bytes(LISTED_V4)).unwrap();
    let flow = Flow {
        service: ("10.96.0.10".parse().unwrap(), 53),
        server: ("127.0.0.1".parse().unwrap(), 5353),
    };
    assert_eq!(entry.flow, flow);
    let entry = parse(&bytes(LISTED_V6)).unwrap();
    assert_eq!(entry.flow.service, ("fd00::1".parse().unwrap(), 53));
}

#[test]
fn a_deletion_names_the_entry_by_original_tuple_and_id() {
    let entry = parse(&bytes(LISTED_V4)).unwrap();
    let expected = "
        02000000
        34000180 14000180 08000100 7f000001 08000200 0a60000a
                 1c000280 05000100 11000000 06000200 9c400000 06000300 00350000
        08000c00 2a8b03ed";
    assert_eq!(delete(&entry), bytes(expected));
}

/// This request, sent on Linux 6.18, listed the entry above and none of 10.96.0.11.
#[test]
fn a_list_request_filters_in_the_kernel() {
    let expected = "
        02000000
        24000180 0c000180 08000200 0a60000a 14000280 05000100 11000000 06000300 00350000
        14001980 08000100 2a000000 08000200 00000000";
    assert_eq!(
        list(&Selection::Port("10.96.0.10".parse().unwrap(), 53)),
        bytes(expected)
    );
}

#[test]
fn ipv6_requests_do_not_use_the_kernels_inverted_address_filter() {
    let request = list(&Selection::Port("fd00::1".parse().unwrap(), 53));
    assert!(request.ends_with(&bytes("14001980 08000100 28000000 08000200 00000000")));
}

#[test]
fn d13_many_ports_are_listed_by_address_or_by_protocol_alone() {
    let address = list(&Selection::Address("10.96.0.10".parse().unwrap()));
    let expected = "
        02000000
        1c000180 0c000180 08000200 0a60000a 0c000280 05000100 11000000
        14001980 08000100 0a000000 08000200 00000000";
    assert_eq!(address, bytes(expected));
    let address = list(&Selection::Address("fd00:10:96::10".parse().unwrap()));
    let expected = "
        0a000000
        28000180 18000180 14000400 fd000010009600000000000000000010 0c000280 05000100 11000000
        14001980 08000100 08000000 08000200 00000000";
    assert_eq!(address, bytes(expected));
    let family = list(&Selection::Family(Family::V6));
    let expected = "
        0a000000
        10000180 0c000280 05000100 11000000
        14001980 08000100 08000000 08000200 00000000";
    assert_eq!(family, bytes(expected));
}

#[test]
fn truncated_messages_are_refused() {
    let whole = bytes(LISTED_V4);
    for length in 0..whole.len() {
        if let Some(entry) = parse(&whole[..length]) {
            assert_eq!(entry.flow.service.1, 53);
        }
    }
    let tcp = LISTED_V4.replace("05000100 11000000", "05000100 06000000");
    assert_eq!(parse(&bytes(&tcp)), None);
}
