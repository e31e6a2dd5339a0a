//! Encodes elements of the sets that follow this node's endpoints as messages of `nf_tables`.
//!
//! Pods of this node are added and removed all the time. An `nft` process for each would cost more than the rest of the
//! update. Names and numbers are those of `include/uapi/linux/netfilter/nf_tables.h`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netlink_pipeline::{Request, Transaction, Unsendable, Writer};
use topology_core::model::{Family, Protocol};

use super::desired::{EndpointDelta, endpoint_elements};
use super::sets::Element;
use super::table::TABLE;

/// Elements in one transaction: an element takes at most 44 bytes, and an attribute 64 KiB.
const MAX_ELEMENTS: usize = 1_024;

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u8 = 10;
/// `NFT_MSG_NEWSETELEM` and `NFT_MSG_DELSETELEM` of the subsystem.
const ADD: u16 = 0x0a0c;
const DELETE: u16 = 0x0a0e;
/// `NLM_F_CREATE` of `linux/netlink.h`.
const CREATE: u16 = 0x400;

const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_DATA_VALUE: u16 = 1;

/// Returns the transactions that add and remove the elements of endpoints, to be sent one after the other.
pub(super) fn transactions(
    delta: &EndpointDelta,
) -> impl Iterator<Item = Result<Transaction, Unsendable>> {
    let add = |pods| transaction(Request::new(ADD, CREATE), pods);
    let delete = |pods| transaction(Request::new(DELETE, 0), pods);
    let added = delta.added.chunks(MAX_ELEMENTS).map(add);
    added.chain(delta.removed.chunks(MAX_ELEMENTS).map(delete))
}

fn transaction(request: Request, pods: &[IpAddr]) -> Result<Transaction, Unsendable> {
    let mut transaction = Transaction::new(SUBSYSTEM)?;
    let mut lists: BTreeMap<(&str, Family), Vec<Element>> = BTreeMap::new();
    for (set, element) in pods.iter().copied().flat_map(endpoint_elements) {
        let list = lists.entry((set.name, element.family())).or_default();
        list.push(element);
    }
    for ((set, family), elements) in lists {
        transaction.push(request, |out| list(out, set, family, &elements))?;
    }
    Ok(transaction)
}

fn list(out: &mut Writer<'_>, set: &str, family: Family, elements: &[Element]) {
    let family = match family {
        Family::V4 => NFPROTO_IPV4,
        Family::V6 => NFPROTO_IPV6,
    };
    // `struct nfgenmsg`: family, version, resource id.
    out.bytes(&[family, 0, 0, 0]);
    out.attribute(NFTA_SET_ELEM_LIST_TABLE, &named(TABLE));
    out.attribute(NFTA_SET_ELEM_LIST_SET, &named(set));
    out.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |out| {
        for element in elements {
            out.nested(NFTA_LIST_ELEM, |out| {
                out.nested(NFTA_SET_ELEM_KEY, |out| {
                    out.attribute(NFTA_DATA_VALUE, &key(element));
                });
            });
        }
    });
}

/// A name with a NUL at its end.
fn named(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The key of an element: its fields in network byte order, each padded to four bytes.
fn key(element: &Element) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    match *element {
        // Only the start of the range: sets of intervals do not follow endpoints.
        Element::Range(range) => octets(range.ip()),
        Element::Address(ip) => octets(ip),
        Element::Pair(ip) => octets(ip).repeat(2),
        Element::Listener(ip, protocol, port) => {
            let mut bytes = octets(ip);
            bytes.extend([protocol_number(protocol), 0, 0, 0]);
            bytes.extend(port.to_be_bytes());
            bytes.extend([0, 0]);
            bytes
        }
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

    use super::*;

    fn delta(added: &[&str], removed: &[&str]) -> EndpointDelta {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        EndpointDelta {
            added: addresses(added),
            removed: addresses(removed),
        }
    }

    /// `strace -e sendmsg -xx nft add element ip ipvs-topo hairpin '{ 10.244.1.1 . 10.244.1.1 }'`, nft 1.0.6. In
    /// addition, nft requests no acknowledgement and numbers the set within the transaction
    /// (`NFTA_SET_ELEM_LIST_SET_ID`).
    #[test]
    fn an_element_is_encoded_like_nft() {
        let delta = delta(&["10.244.1.1"], &[]);
        let mut transaction = transactions(&delta).next().unwrap().unwrap();
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

    fn counts(delta: &EndpointDelta) -> Vec<u32> {
        let transactions = transactions(delta);
        transactions.map(|each| each.unwrap().count()).collect()
    }

    #[test]
    fn verbs_each_have_a_transaction_and_families_a_message() {
        assert!(counts(&EndpointDelta::default()).is_empty());
        let all = delta(&["10.244.1.1", "fd00::1", "10.244.1.2"], &["10.244.1.3"]);
        assert_eq!(counts(&all), [2, 1]);
    }

    #[test]
    fn any_number_of_elements_fits_into_transactions() {
        let pods = |prefix: &str| {
            let addresses =
                (0..=2 * MAX_ELEMENTS).map(|nth| format!("{prefix}{nth:x}").parse().unwrap());
            addresses.collect()
        };
        let many = EndpointDelta {
            added: pods("fd00::"),
            removed: pods("fd01::"),
        };
        assert_eq!(counts(&many), [1; 6]);
    }
}
