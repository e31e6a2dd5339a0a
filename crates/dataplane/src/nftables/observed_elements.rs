//! Reads the elements of sets over netlink, and encodes the desired ones in the same bytes.
//!
//! A table can have tens of thousands of elements. Names and numbers are those of
//! `include/uapi/linux/netfilter/nf_tables.h`; the kernel writes the messages in `nf_tables_dump_set` and
//! `nf_tables_fill_setelem` of `net/netfilter/nf_tables_api.c`.
//!
//! The kernel does not mark a dump of elements during which the set changed (`nf_tables_dump_set` does not call
//! `nl_dump_check_consistent`). The reader compares the [generation](super::generation) before and after.

use std::net::IpAddr;

use netlink_pipeline::{Attributes, Connection, DecodeError, Error, Request, Writer};
use topology_core::model::IpNetwork;

use super::elements::{
    NFTA_DATA_VALUE, NFTA_SET_ELEM_DATA, NFTA_SET_ELEM_KEY, NFTA_SET_ELEM_LIST_ELEMENTS,
    append_address, append_key, name_set,
};
use super::family::TableFamily;
use super::sets::Element;

/// `NFT_MSG_GETSETELEM` of the subsystem `NFNL_SUBSYS_NFTABLES`.
const GET: u16 = 0x0a0d;
/// Bytes of `struct nfgenmsg`.
pub(super) const HEADER: usize = 4;

const NFTA_SET_ELEM_FLAGS: u16 = 3;
const NFTA_SET_ELEM_USERDATA: u16 = 6;
/// `NFT_SET_ELEM_INTERVAL_END` alone.
const INTERVAL_END: [u8; 4] = 1_u32.to_be_bytes();

/// Bytes of the longest element of ours: address, protocol and port of a virtual server and a source range of IPv6.
const LONGEST: usize = 40;

/// An element in the kernel's bytes: its key and the value of a map, followed by zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ElementBytes {
    bytes: [u8; LONGEST],
    /// Whether it is the first key behind a range. All other elements of a set of ranges are the first key of one.
    is_end: bool,
}

impl ElementBytes {
    /// `None` if it is longer than every element of ours.
    fn new(key: &[u8], value: &[u8], is_end: bool) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        let (start, rest) = bytes.split_at_mut_checked(key.len())?;
        start.copy_from_slice(key);
        rest.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { bytes, is_end })
    }
}

/// Reads the elements of a set of our table, in the order of [`in_order`].
pub(super) fn read(
    connection: &mut Connection,
    family: TableFamily,
    set: &str,
    is_interval: bool,
) -> Result<Vec<ElementBytes>, Error> {
    let mut request = Vec::new();
    name_set(&mut Writer::new(&mut request), family, set);
    let parts = connection.dump(Request::new(GET, 0), &request, |message| {
        parse(message.payload).map(Some)
    })?;
    Ok(in_order(parts.concat(), is_interval))
}

/// What the kernel holds after it has loaded `elements`.
pub(super) fn loaded(elements: &[Element], is_interval: bool) -> Vec<ElementBytes> {
    let mut loaded = Vec::with_capacity(elements.len());
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for element in elements {
        key.clear();
        value.clear();
        append_key(&mut key, element);
        if let Element::Mark(.., mark) = element {
            value.extend_from_slice(&mark.to_ne_bytes());
        }
        loaded.extend(ElementBytes::new(&key, &value, false));
        if let Element::Range(range) = element {
            loaded.extend(end(range));
        }
    }
    in_order(loaded, is_interval)
}

/// The end of a range; `None` if it ends with the last address.
fn end(range: &IpNetwork) -> Option<ElementBytes> {
    let next = match range.broadcast() {
        IpAddr::V4(last) => IpAddr::V4(last.to_bits().checked_add(1)?.into()),
        IpAddr::V6(last) => IpAddr::V6(last.to_bits().checked_add(1)?.into()),
    };
    let mut key = Vec::new();
    append_address(&mut key, next);
    ElementBytes::new(&key, &[], true)
}

/// Sorts elements, which the kernel lists in the order of its hash table or tree, perhaps one of them twice while the
/// hash table grows.
fn in_order(mut elements: Vec<ElementBytes>, is_interval: bool) -> Vec<ElementBytes> {
    if is_interval {
        return merged(elements);
    }
    elements.sort_unstable();
    elements.dedup();
    elements
}

/// Merges ranges that touch, because `nft` writes the same ranges in several ways: with an end at address 0, or without
/// the end of a range where the next one starts (`set_to_intervals` in `src/intervals.c` of nftables).
fn merged(mut boundaries: Vec<ElementBytes>) -> Vec<ElementBytes> {
    // The end of a range comes before the start of the next.
    boundaries.sort_unstable_by_key(|boundary| (boundary.bytes, !boundary.is_end));
    let mut merged: Vec<ElementBytes> = Vec::with_capacity(boundaries.len());
    for boundary in boundaries {
        let is_inside = merged.last().is_some_and(|last| !last.is_end);
        if boundary.is_end != is_inside {
            // A start inside of a range, or an end outside.
            continue;
        }
        if merged.pop_if(|last| last.bytes == boundary.bytes).is_none() {
            merged.push(boundary);
        }
    }
    merged
}

/// The elements in the payload of a message.
fn parse(payload: &[u8]) -> Result<Vec<ElementBytes>, DecodeError> {
    let attributes = payload.get(HEADER..).ok_or(DecodeError::Short {
        what: "struct nfgenmsg",
        need: HEADER,
        have: payload.len(),
    })?;
    let mut elements = Vec::new();
    for attribute in Attributes::new(attributes) {
        let attribute = attribute?;
        if attribute.number() == NFTA_SET_ELEM_LIST_ELEMENTS {
            for element in Attributes::new(attribute.value) {
                elements.push(parse_element(element?.value)?);
            }
        }
    }
    Ok(elements)
}

fn parse_element(attributes: &[u8]) -> Result<ElementBytes, DecodeError> {
    let (mut key, mut value, mut is_end) = (None, &[][..], false);
    for attribute in Attributes::new(attributes) {
        let attribute = attribute?;
        match attribute.number() {
            NFTA_SET_ELEM_KEY => key = Some(data(attribute.value)?),
            NFTA_SET_ELEM_DATA => value = data(attribute.value)?,
            NFTA_SET_ELEM_FLAGS if attribute.value == INTERVAL_END => is_end = true,
            // A comment, or nft's note that a range has no end.
            NFTA_SET_ELEM_USERDATA => {}
            // No element of ours has it.
            number => {
                return Err(DecodeError::Value {
                    what: "the type of a set element's attribute",
                    value: number.into(),
                });
            }
        }
    }
    let key = key.ok_or(DecodeError::Missing {
        what: "NFTA_SET_ELEM_KEY",
    })?;
    ElementBytes::new(key, value, is_end).ok_or(DecodeError::Value {
        what: "the length of a set element",
        value: u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX),
    })
}

/// The value in a `struct nft_data`, as `nft_data_dump` writes it.
fn data(nested: &[u8]) -> Result<&[u8], DecodeError> {
    let first = Attributes::new(nested).next().transpose()?;
    let value = first.filter(|attribute| attribute.number() == NFTA_DATA_VALUE);
    value
        .map(|attribute| attribute.value)
        .ok_or(DecodeError::Missing {
            what: "NFTA_DATA_VALUE",
        })
}

/// Parses arbitrary bytes as the payload of a message. Elements have one order, whatever their order in the message.
#[cfg(fuzzing)]
pub(super) fn fuzz(payload: &[u8]) {
    let Ok(elements) = parse(payload) else {
        return;
    };
    let reversed: Vec<_> = elements.iter().rev().copied().collect();
    for is_interval in [false, true] {
        let ordered = in_order(elements.clone(), is_interval);
        assert_eq!(ordered, in_order(reversed.clone(), is_interval));
        assert_eq!(ordered, in_order(ordered.clone(), is_interval));
    }
}

#[cfg(test)]
mod tests {
    use topology_core::model::{Protocol, parse_range};

    use super::super::elements::fill;
    use super::*;

    /// An attribute as the kernel writes it: `nla_nest_start_noflag` sets no flag.
    fn attribute(number: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).attribute(number, value);
        bytes
    }

    fn key(bytes: &[u8]) -> Vec<u8> {
        attribute(NFTA_SET_ELEM_KEY, &attribute(NFTA_DATA_VALUE, bytes))
    }

    fn value(bytes: &[u8]) -> Vec<u8> {
        attribute(NFTA_SET_ELEM_DATA, &attribute(NFTA_DATA_VALUE, bytes))
    }

    /// The first address of a range.
    fn start(ip: [u8; 4]) -> Vec<u8> {
        key(&ip)
    }

    /// The first address behind a range.
    fn stop(ip: [u8; 4]) -> Vec<u8> {
        [key(&ip), attribute(NFTA_SET_ELEM_FLAGS, &INTERVAL_END)].concat()
    }

    /// The payload of a message, as `nf_tables_dump_set` writes it.
    fn payload(elements: &[Vec<u8>]) -> Vec<u8> {
        let elements: Vec<_> = elements.iter().map(|each| attribute(1, each)).collect();
        [
            vec![2, 0, 1, 7],
            attribute(1, b"ipvs-topo\0"),
            attribute(2, b"vips\0"),
            attribute(NFTA_SET_ELEM_LIST_ELEMENTS, &elements.concat()),
        ]
        .concat()
    }

    fn keys(elements: &[Vec<u8>]) -> Vec<ElementBytes> {
        in_order(parse(&payload(elements)).unwrap(), false)
    }

    fn ranges(elements: &[Vec<u8>]) -> Vec<ElementBytes> {
        in_order(parse(&payload(elements)).unwrap(), true)
    }

    fn loaded_ranges(texts: &[&str]) -> Vec<ElementBytes> {
        let ranges = texts.iter().map(|text| parse_range(text).unwrap());
        let ranges: Vec<_> = ranges.map(Element::Range).collect();
        loaded(&ranges, true)
    }

    fn address(text: &str) -> Element {
        Element::Address(text.parse().unwrap())
    }

    #[test]
    fn a_message_of_the_kernel_is_read_whatever_the_order_of_its_elements() {
        let message = [
            // `struct nfgenmsg`, with the lower half of the generation.
            &[2, 0, 1, 7][..],
            &[14, 0, 1, 0],
            b"ipvs-topo\0\0\0",
            &[9, 0, 2, 0],
            b"vips\0\0\0\0",
            &[36, 0, 3, 0],
            &[16, 0, 1, 0, 12, 0, 1, 0, 8, 0, 1, 0, 203, 0, 113, 9],
            &[16, 0, 1, 0, 12, 0, 1, 0, 8, 0, 1, 0, 203, 0, 113, 7],
        ]
        .concat();
        let desired = loaded(&[address("203.0.113.7"), address("203.0.113.9")], false);
        assert_eq!(in_order(parse(&message).unwrap(), false), desired);
        assert_eq!(parse(&payload(&[])), Ok(Vec::new()));
    }

    #[test]
    fn an_element_that_is_listed_twice_counts_once() {
        let listed = [[10, 0, 0, 2], [10, 0, 0, 1], [10, 0, 0, 2]].map(|ip| key(&ip));
        let desired = loaded(&[address("10.0.0.1"), address("10.0.0.2")], false);
        assert_eq!(keys(&listed), desired);
        assert_ne!(keys(&listed[..1]), desired);
    }

    /// The kernel keeps the bytes that it got.
    #[test]
    fn every_kind_of_element_is_read_as_it_is_sent() {
        for ip in ["203.0.113.7", "2001:db8::7"] {
            let ip: IpAddr = ip.parse().unwrap();
            let range = if ip.is_ipv4() {
                "10.1.2.0/24"
            } else {
                "fd00::/8"
            };
            let range = parse_range(range).unwrap();
            for element in [
                Element::Address(ip),
                Element::Pair(ip),
                Element::Listener(ip, Protocol::Sctp, 8080),
                Element::SourceRange(ip, Protocol::Tcp, 80, range),
                Element::Mark(ip, Protocol::Udp, 53, 0x8000_1000),
            ] {
                let mut sent = Vec::new();
                fill(&mut Writer::new(&mut sent), &element);
                let desired = loaded(&[element], false);
                assert_eq!(desired.len(), 1, "{element:?} is not too long");
                assert_eq!(keys(&[sent]), desired, "{element:?}");
            }
        }
    }

    #[test]
    fn a_map_with_another_mark_differs() {
        let listener = [10, 0, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0];
        let held = |mark: u32| keys(&[[key(&listener), value(&mark.to_ne_bytes())].concat()]);
        let ip = "10.0.0.1".parse().unwrap();
        let desired = loaded(&[Element::Mark(ip, Protocol::Tcp, 80, 0x1000)], false);
        assert_eq!(held(0x1000), desired);
        assert_ne!(held(0x1001), desired);
        assert_ne!(keys(&[key(&listener)]), desired);
    }

    #[test]
    fn ranges_are_the_same_in_every_way_that_nft_writes_them() {
        let desired = loaded_ranges(&["10.0.0.0/9", "10.128.0.0/9", "192.168.1.1/32"]);
        let host = [start([192, 168, 1, 1]), stop([192, 168, 1, 2])];
        let (first, second) = (start([10, 0, 0, 0]), start([10, 128, 0, 0]));
        let (middle, last) = (stop([10, 128, 0, 0]), stop([11, 0, 0, 0]));
        let zero = stop([0, 0, 0, 0]);
        let all = [&zero, &first, &middle, &second, &last];
        for written in [
            &all[..],
            &[&last, &second, &middle, &first],
            &[&zero, &first, &second, &last],
            &[&first, &last],
        ] {
            let written = written.iter().copied().chain(&host).cloned();
            let written: Vec<_> = written.collect();
            assert_eq!(ranges(&written), desired, "{written:?}");
        }
    }

    #[test]
    fn ranges_begin_with_the_first_address_and_end_with_the_last() {
        let desired = loaded_ranges(&["0.0.0.0/8", "224.0.0.0/3"]);
        // nft notes that the range has no end.
        let note = attribute(NFTA_SET_ELEM_USERDATA, &[1, 4, 1, 0, 0, 0]);
        let top = [start([224, 0, 0, 0]), note].concat();
        let bottom = [start([0, 0, 0, 0]), stop([1, 0, 0, 0])];
        assert_eq!(
            ranges(&[top, bottom[0].clone(), bottom[1].clone()]),
            desired
        );
        assert_eq!(
            ranges(&[start([0, 0, 0, 0])]),
            loaded_ranges(&["0.0.0.0/0"])
        );
        let v6 = [key(&[0; 16])];
        assert_eq!(ranges(&v6), loaded_ranges(&["::/0"]));
    }

    #[test]
    fn a_range_that_is_added_removed_or_of_another_length_differs() {
        let desired = loaded_ranges(&["10.96.0.0/12", "172.16.0.0/12"]);
        let service = [start([10, 96, 0, 0]), stop([10, 112, 0, 0])];
        let pods = [start([172, 16, 0, 0]), stop([172, 32, 0, 0])];
        let other = [start([192, 0, 2, 0]), stop([192, 0, 3, 0])];
        let longer = [start([172, 16, 0, 0]), stop([173, 0, 0, 0])];
        assert_eq!(ranges(&[service.clone(), pods.clone()].concat()), desired);
        assert_ne!(ranges(&service), desired);
        assert_ne!(ranges(&[service.clone(), longer].concat()), desired);
        assert_ne!(ranges(&[service, pods, other].concat()), desired);
    }

    #[test]
    fn an_element_with_anything_else_is_an_error() {
        let address = key(&[10, 0, 0, 1]);
        let with = |number, value: &[u8]| [address.clone(), attribute(number, value)].concat();
        let verdict = attribute(NFTA_SET_ELEM_DATA, &attribute(2, &[0; 8]));
        for (element, why) in [
            (Vec::new(), "no key"),
            (
                attribute(NFTA_SET_ELEM_FLAGS, &[0, 0, 0, 2]),
                "NFT_SET_ELEM_CATCHALL",
            ),
            (with(NFTA_SET_ELEM_FLAGS, &[1]), "flags of another length"),
            (with(4, &[0; 8]), "NFTA_SET_ELEM_TIMEOUT"),
            (with(7, &[0; 8]), "NFTA_SET_ELEM_EXPR"),
            (with(10, &[0; 8]), "NFTA_SET_ELEM_KEY_END"),
            ([address.clone(), verdict].concat(), "a verdict"),
            (key(&[0; LONGEST + 1]), "a long key"),
            ([key(&[0; LONGEST]), value(&[0])].concat(), "a long value"),
            (attribute(NFTA_SET_ELEM_KEY, &[]), "an empty key"),
        ] {
            assert!(parse(&payload(&[element])).is_err(), "{why}");
        }
        assert!(parse(&payload(&[address])).is_ok(), "the test can fail");
        assert!(parse(&[2, 0, 1]).is_err(), "a message that is cut short");
        assert!(parse(&[2, 0, 1, 7, 80, 0, 3, 0]).is_err());
    }
}
