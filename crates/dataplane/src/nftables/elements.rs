//! Elements of the set `hairpin`, as messages of `nf_tables`.
//!
//! Pods of this node come and go all the time: a process of nft for each would cost more than all else about it.
//! Names and numbers are those of `include/uapi/linux/netfilter/nf_tables.h`.

use std::net::IpAddr;

use netlink_pipeline::{Request, Transaction, Unsendable, Writer};
use topology_core::model::Family;

use super::TABLE;
use super::render::HAIRPIN;

/// Moves of one transaction: each is an element of 44 bytes at most, and an attribute ends at 64 KiB.
const MOST: usize = 1_024;

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

/// Endpoints of this node that came or left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointDelta {
    pub added: Vec<IpAddr>,
    pub removed: Vec<IpAddr>,
}

impl EndpointDelta {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The same without the addresses that `keep` is against.
    pub fn retain(&mut self, keep: impl Fn(&IpAddr) -> bool) {
        self.added.retain(&keep);
        self.removed.retain(&keep);
    }

    /// What tells the kernel, a transaction after the other.
    pub(super) fn transactions(&self) -> impl Iterator<Item = Result<Transaction, Unsendable>> {
        let add = |pods| transaction(Request::new(ADD, CREATE), pods);
        let delete = |pods| transaction(Request::new(DELETE, 0), pods);
        let came = self.added.chunks(MOST).map(add);
        came.chain(self.removed.chunks(MOST).map(delete))
    }
}

fn transaction(request: Request, pods: &[IpAddr]) -> Result<Transaction, Unsendable> {
    let mut transaction = Transaction::new(SUBSYSTEM)?;
    for family in [Family::V4, Family::V6] {
        let is_of_family = |pod: &IpAddr| Family::of(*pod) == family;
        let pods: Vec<IpAddr> = pods.iter().copied().filter(is_of_family).collect();
        if !pods.is_empty() {
            transaction.push(request, |out| list(out, family, &pods))?;
        }
    }
    Ok(transaction)
}

fn list(out: &mut Writer<'_>, family: Family, pods: &[IpAddr]) {
    let family = match family {
        Family::V4 => NFPROTO_IPV4,
        Family::V6 => NFPROTO_IPV6,
    };
    // `struct nfgenmsg`: family, version, resource id.
    out.bytes(&[family, 0, 0, 0]);
    out.attribute(NFTA_SET_ELEM_LIST_TABLE, &named(TABLE));
    out.attribute(NFTA_SET_ELEM_LIST_SET, &named(HAIRPIN));
    out.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |out| {
        for pod in pods {
            out.nested(NFTA_LIST_ELEM, |out| {
                out.nested(NFTA_SET_ELEM_KEY, |out| {
                    out.attribute(NFTA_DATA_VALUE, &pair(*pod));
                });
            });
        }
    });
}

/// A name with the NUL at its end.
fn named(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The address twice: who sends, and to whom.
fn pair(pod: IpAddr) -> Vec<u8> {
    match pod {
        IpAddr::V4(ip) => ip.octets().repeat(2),
        IpAddr::V6(ip) => ip.octets().repeat(2),
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

    /// `strace -e sendmsg -xx nft add element ip ipvs-topo hairpin '{ 10.244.1.1 . 10.244.1.1 }'`, nft 1.0.6: the same
    /// but that nft asks for no acknowledgement, and numbers the set within the transaction (`NFTA_SET_ELEM_LIST_SET_ID`).
    #[test]
    fn an_element_is_what_nft_sends_for_it() {
        let delta = delta(&["10.244.1.1"], &[]);
        let mut transaction = delta.transactions().next().unwrap().unwrap();
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
        let transactions = delta.transactions();
        transactions.map(|each| each.unwrap().count()).collect()
    }

    #[test]
    fn verbs_each_have_a_transaction_and_families_a_message() {
        assert!(counts(&EndpointDelta::default()).is_empty());
        let all = delta(&["10.244.1.1", "fd00::1", "10.244.1.2"], &["10.244.1.3"]);
        assert_eq!(counts(&all), [2, 1]);
    }

    #[test]
    fn as_many_as_there_are_fit_into_transactions() {
        let pods = |prefix: &str| {
            let addresses = (0..=2 * MOST).map(|nth| format!("{prefix}{nth:x}").parse().unwrap());
            addresses.collect()
        };
        let many = EndpointDelta {
            added: pods("fd00::"),
            removed: pods("fd01::"),
        };
        assert_eq!(counts(&many), [1; 6]);
    }
}
