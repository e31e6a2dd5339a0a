//! Encodes set elements as messages of `nf_tables`.
//!
//! Pods of this node and node ports are added and removed all the time. An `nft` process for each would cost more than
//! the rest of the update. Names and numbers are those of `include/uapi/linux/netfilter/nf_tables.h`, those of the
//! families of `include/uapi/linux/netfilter.h`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netlink_pipeline::{Request, Transaction, Unsendable, Writer};
use topology_core::model::Protocol;

use super::delta::ElementDelta;
use super::desired::DesiredTables;
use super::family::TableFamily;
use super::sets::{Element, SetElement, SetName};
use super::table::TABLE;

/// Elements that one transaction adds or removes. An element takes at most 52 bytes, and 36 more if it replaces a value;
/// a datagram has 64 KiB.
const MAX_ELEMENTS: usize = 700;

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u8 = 10;
/// `NFT_MSG_NEWSETELEM` and `NFT_MSG_DELSETELEM` of the subsystem.
const ADD: u16 = 0x0a0c;
const DELETE: u16 = 0x0a0e;
/// `NLM_F_CREATE` of `linux/netlink.h`.
const CREATE: u16 = 0x400;

const NFPROTO_IPV4: u8 = 2;
const NFPROTO_ARP: u8 = 3;
const NFPROTO_IPV6: u8 = 10;

const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
pub(super) const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_LIST_ELEM: u16 = 1;
pub(super) const NFTA_SET_ELEM_KEY: u16 = 1;
pub(super) const NFTA_SET_ELEM_DATA: u16 = 2;
pub(super) const NFTA_DATA_VALUE: u16 = 1;

/// Returns the transactions that change `held` by `delta`, to be sent one after the other.
pub(super) fn transactions(
    held: &DesiredTables,
    delta: &ElementDelta,
) -> impl Iterator<Item = Result<Transaction, Unsendable>> {
    // The kernel refuses a second value for a key.
    let add = |added: &[SetElement]| transaction(held, &held.replaced_by(added), added);
    let delete = |removed: &[SetElement]| transaction(held, removed, &[]);
    let added = delta.added.chunks(MAX_ELEMENTS).map(add);
    added.chain(delta.removed.chunks(MAX_ELEMENTS).map(delete))
}

fn transaction(
    held: &DesiredTables,
    removed: &[SetElement],
    added: &[SetElement],
) -> Result<Transaction, Unsendable> {
    let mut transaction = Transaction::new(SUBSYSTEM)?;
    push(&mut transaction, held, Request::new(DELETE, 0), removed)?;
    push(&mut transaction, held, Request::new(ADD, CREATE), added)?;
    Ok(transaction)
}

/// Appends one message for each set and table.
fn push(
    transaction: &mut Transaction,
    held: &DesiredTables,
    request: Request,
    changed: &[SetElement],
) -> Result<(), Unsendable> {
    let mut lists: BTreeMap<(TableFamily, SetName), Vec<Element>> = BTreeMap::new();
    for (set, element) in changed {
        let families = set.families_of(element);
        for family in families.filter(|family| held.has_rules(*family)) {
            let list = lists.entry((family, set.name_of(element))).or_default();
            list.push(*element);
        }
    }
    let mut lists = lists.into_iter();
    lists.try_for_each(|((family, set), elements)| {
        transaction.push(request, |out| list(out, set, family, &elements))
    })
}

fn list(out: &mut Writer<'_>, set: SetName, family: TableFamily, elements: &[Element]) {
    name_set(out, family, &set.to_string());
    out.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |out| {
        for element in elements {
            out.nested(NFTA_LIST_ELEM, |out| fill(out, element));
        }
    });
}

/// Begins a message about the elements of a set of our table.
pub(super) fn name_set(out: &mut Writer<'_>, family: TableFamily, set: &str) {
    name_table(out, family);
    out.text(NFTA_SET_ELEM_LIST_SET, set);
}

/// Begins a message about objects of our table: all have its name in the same attribute.
pub(super) fn name_table(out: &mut Writer<'_>, family: TableFamily) {
    let family = match family {
        TableFamily::Ip => NFPROTO_IPV4,
        TableFamily::Ip6 => NFPROTO_IPV6,
        TableFamily::Arp => NFPROTO_ARP,
    };
    // `struct nfgenmsg`: family, version, resource id.
    out.bytes(&[family, 0, 0, 0]);
    out.text(NFTA_SET_ELEM_LIST_TABLE, TABLE);
}

pub(super) fn fill(out: &mut Writer<'_>, element: &Element) {
    let mut key = Vec::new();
    append_key(&mut key, element);
    out.nested(NFTA_SET_ELEM_KEY, |out| {
        out.attribute(NFTA_DATA_VALUE, &key);
    });
    // A mark is in host byte order.
    if let Element::Mark(.., mark) = element {
        out.nested(NFTA_SET_ELEM_DATA, |out| {
            out.fixed(NFTA_DATA_VALUE, mark.to_ne_bytes());
        });
    }
}

/// Appends the key of an element: its fields in network byte order, each padded to four bytes.
pub(super) fn append_key(key: &mut Vec<u8>, element: &Element) {
    match *element {
        // Only the start of the range: single elements of intervals are not changed.
        Element::Range(range) => append_address(key, range.ip()),
        Element::Address(ip) => append_address(key, ip),
        Element::Pair(ip) => {
            append_address(key, ip);
            append_address(key, ip);
        }
        Element::Listener(ip, protocol, port) | Element::Mark(ip, protocol, port, _) => {
            append_address(key, ip);
            key.extend_from_slice(&[protocol_number(protocol), 0, 0, 0]);
            let [high, low] = port.to_be_bytes();
            key.extend_from_slice(&[high, low, 0, 0]);
        }
        Element::SourceRange(ip, protocol, port, range) => {
            append_key(key, &Element::Listener(ip, protocol, port));
            append_address(key, range.network());
        }
    }
}

pub(super) fn append_address(key: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => key.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => key.extend_from_slice(&ip.octets()),
    }
}

/// `IPPROTO_` numbers of `linux/in.h`.
const fn protocol_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

#[cfg(test)]
mod tests {
    use netlink_pipeline::{Conversation as _, Next, Sequence};

    use topology_core::model::parse_range;

    use super::super::sets::SetId;
    use super::*;

    fn pair(text: &str) -> SetElement {
        (SetId::Hairpin, Element::Pair(text.parse().unwrap()))
    }

    fn delta(added: &[&str], removed: &[&str]) -> ElementDelta {
        let elements = |texts: &[&str]| texts.iter().map(|text| pair(text)).collect();
        ElementDelta {
            added: elements(added),
            removed: elements(removed),
        }
    }

    /// `strace -e sendmsg -xx nft add element ip ipvs-topo hairpin '{ 10.244.1.1 . 10.244.1.1 }'`, nft 1.0.6. In
    /// addition, nft requests no acknowledgement and numbers the set within the transaction
    /// (`NFTA_SET_ELEM_LIST_SET_ID`).
    #[test]
    fn an_element_is_encoded_like_nft() {
        let delta = delta(&["10.244.1.1"], &[]);
        let mut transaction = transactions(&DesiredTables::default(), &delta)
            .next()
            .unwrap()
            .unwrap();
        let mut sequence = Sequence::new();
        let Next::Send(bytes) = transaction.next(&mut sequence) else {
            panic!("nothing is sent");
        };
        let message = bytes.get(20..bytes.len() - 20).unwrap();
        let expected = [
            &[72, 0, 0, 0, 0x0c, 0x0a, 0x05, 0x04, 2, 0, 0, 0, 0, 0, 0, 0][..],
            &[2, 0, 0, 0],
            &[14, 0, 1, 0],
            b"ipvs-topo\0\0\0",
            &[12, 0, 2, 0],
            b"hairpin\0",
            &[24, 0, 3, 0x80],
            &[20, 0, 1, 0x80],
            &[16, 0, 1, 0x80],
            &[12, 0, 1, 0, 10, 244, 1, 1, 10, 244, 1, 1],
        ]
        .concat();
        assert_eq!(message, expected);
    }

    fn filled(element: &Element) -> Vec<u8> {
        let mut bytes = Vec::new();
        fill(&mut Writer::new(&mut bytes), element);
        bytes
    }

    /// The same for `marks '{ 10.0.0.1 . tcp . 80 : 0x00001000 }'` and
    /// `source-ranges-24 '{ 10.0.0.1 . tcp . 80 . 10.1.2.0 }'`, on a processor with little-endian numbers.
    #[test]
    #[cfg(target_endian = "little")]
    fn marks_and_source_ranges_are_what_nft_sends_for_them() {
        let ip = "10.0.0.1".parse().unwrap();
        let listener = [10, 0, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0];
        let mark = Element::Mark(ip, Protocol::Tcp, 80, 0x1000);
        let data = [12, 0, 2, 0x80, 8, 0, 1, 0, 0, 0x10, 0, 0];
        let head = [20, 0, 1, 0x80, 16, 0, 1, 0];
        assert_eq!(filled(&mark), [&head[..], &listener, &data].concat());
        let range = parse_range("10.1.2.0/24").unwrap();
        let range = Element::SourceRange(ip, Protocol::Tcp, 80, range);
        let head = [24, 0, 1, 0x80, 20, 0, 1, 0];
        assert_eq!(
            filled(&range),
            [&head[..], &listener, &[10, 1, 2, 0]].concat()
        );
    }

    #[test]
    fn a_mark_that_is_replaced_is_deleted_in_the_same_transaction() {
        let ip = "fd00::1".parse().unwrap();
        let [old, new] = [7, 8].map(|mark| Element::Mark(ip, Protocol::Udp, 53, mark));
        let held = DesiredTables::default().with(SetId::Marks, [old]);
        let delta = ElementDelta {
            added: vec![(SetId::Marks, new)],
            ..ElementDelta::default()
        };
        let counts: Vec<u32> = transactions(&held, &delta)
            .map(|each| each.unwrap().count())
            .collect();
        assert_eq!(counts, [2]);
    }

    #[test]
    fn the_longest_elements_fit_into_transactions() {
        let at = |nth: usize| format!("fd00::{nth:x}").parse().unwrap();
        let mark = |nth, mark| Element::Mark(at(nth), Protocol::Udp, 53, mark);
        let held =
            DesiredTables::default().with(SetId::Marks, (0..MAX_ELEMENTS).map(|nth| mark(nth, 1)));
        let added = (0..MAX_ELEMENTS)
            .map(|nth| (SetId::Marks, mark(nth, 2)))
            .collect();
        let delta = ElementDelta {
            added,
            ..ElementDelta::default()
        };
        for transaction in transactions(&held, &delta) {
            assert_eq!(transaction.unwrap().count(), 2);
        }
    }

    fn counts(delta: &ElementDelta) -> Vec<u32> {
        let held = DesiredTables::default();
        let transactions = transactions(&held, delta);
        transactions.map(|each| each.unwrap().count()).collect()
    }

    #[test]
    fn verbs_each_have_a_transaction_and_families_and_sets_a_message() {
        assert!(counts(&ElementDelta::default()).is_empty());
        let mut all = delta(&["10.244.1.1", "fd00::1", "10.244.1.2"], &["10.244.1.3"]);
        assert_eq!(counts(&all), [2, 1]);
        let vip = Element::Address("203.0.113.7".parse().unwrap());
        all.added.push((SetId::Vips, vip));
        assert_eq!(counts(&all), [4, 1], "the table arp has the set, too");
    }

    #[test]
    fn any_number_of_elements_fits_into_transactions() {
        let pods = |prefix: &str| {
            let pods = (0..=2 * MAX_ELEMENTS).map(|nth| pair(&format!("{prefix}{nth:x}")));
            pods.collect()
        };
        let many = ElementDelta {
            added: pods("fd00::"),
            removed: pods("fd01::"),
        };
        assert_eq!(counts(&many), [1; 6]);
    }
}
