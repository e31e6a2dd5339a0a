//! Selects the addresses of a node at which node ports are served.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;

use super::{Family, IpNetwork, parse_range};

/// Entries of `nodePortAddresses` in `KubeProxyConfiguration`. Without entries, all addresses of the node count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodePortAddresses(Vec<NodePortEntry>);

/// An entry of `nodePortAddresses`. Prints as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodePortEntry {
    /// `all`: every address of the node.
    All,
    /// `primary`: the node's address in each family.
    Primary,
    /// `localhost`: loopback addresses. IPVS cannot serve them, so it selects nothing here.
    Localhost,
    /// Addresses in a range.
    Range(IpNetwork),
}

/// The error for a text that is not an entry of `nodePortAddresses`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither `primary`, `all`, `localhost` nor an address range such as 192.0.2.0/24")]
pub struct ParseNodePortEntryError(String);

impl FromStr for NodePortEntry {
    type Err = ParseNodePortEntryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(Self::All),
            "primary" => Ok(Self::Primary),
            "localhost" => Ok(Self::Localhost),
            _ => {
                let range = parse_range(text).map(Self::Range);
                range.map_err(|_error| ParseNodePortEntryError(text.to_owned()))
            }
        }
    }
}

impl std::fmt::Display for NodePortEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Primary => f.write_str("primary"),
            Self::Localhost => f.write_str("localhost"),
            Self::Range(range) => range.fmt(f),
        }
    }
}

impl FromIterator<NodePortEntry> for NodePortAddresses {
    fn from_iter<I: IntoIterator<Item = NodePortEntry>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl NodePortAddresses {
    /// Selects from `addresses`, those of the node; `primary` has the node's address of each family.
    ///
    /// As in kube-proxy's IPVS mode, a family that no entry concerns has all its addresses selected (KP-VS-10).
    /// Loopback and IPv6 link-local addresses are never selected. If `primary` is requested and unknown, nothing is
    /// (kube-proxy selects all then, KP-WK-14).
    pub fn select(
        &self,
        addresses: impl IntoIterator<Item = IpAddr>,
        primary: &[IpAddr],
    ) -> BTreeSet<IpAddr> {
        let usable = addresses.into_iter().filter(|address| is_usable(*address));
        usable
            .filter(|address| self.selects(*address, primary))
            .collect()
    }

    /// Whether node ports are also served on loopback addresses, without IPVS.
    pub fn has_localhost(&self) -> bool {
        self.0.contains(&NodePortEntry::Localhost)
    }

    /// Whether all addresses of a family are selected, also those that the node gets later.
    pub fn selects_all(&self, family: Family) -> bool {
        let mut concerning = self.0.iter().filter(|entry| entry.concerns(family));
        let is_all = |entry: &NodePortEntry| match entry {
            NodePortEntry::All => true,
            NodePortEntry::Range(range) => range.prefix() == 0,
            NodePortEntry::Primary | NodePortEntry::Localhost => false,
        };
        concerning.clone().next().is_none() || concerning.any(is_all)
    }

    fn selects(&self, address: IpAddr, primary: &[IpAddr]) -> bool {
        let family = Family::of(address);
        let mut concerning = self
            .0
            .iter()
            .filter(|entry| entry.concerns(family))
            .peekable();
        concerning.peek().is_none()
            || concerning.any(|entry| match entry {
                NodePortEntry::All => true,
                NodePortEntry::Primary => primary.contains(&address),
                NodePortEntry::Localhost => false,
                NodePortEntry::Range(range) => range.contains(address),
            })
    }
}

impl NodePortEntry {
    fn concerns(&self, family: Family) -> bool {
        match self {
            Self::All | Self::Primary | Self::Localhost => true,
            Self::Range(range) => Family::of_range(range) == family,
        }
    }
}

fn is_usable(address: IpAddr) -> bool {
    let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !address.is_loopback() && !address.is_unspecified() && !link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: [&str; 6] = [
        "127.0.0.1",
        "192.168.1.1",
        "10.0.0.1",
        "::1",
        "fe80::1",
        "2001:db8::1",
    ];

    fn selected(entries: &[&str], primary: &[&str]) -> Vec<String> {
        let parse = |text: &&str| text.parse::<IpAddr>().unwrap();
        let entries = entries.iter().map(|text| text.parse().unwrap());
        let addresses: NodePortAddresses = entries.collect();
        let primary: Vec<IpAddr> = primary.iter().map(parse).collect();
        let selected = addresses.select(NODE.iter().map(parse), &primary);
        selected.iter().map(ToString::to_string).collect()
    }

    /// KP-VS-10, KP-UT-003.
    #[test]
    fn without_entries_of_a_family_all_its_addresses_count_except_loopback_and_link_local() {
        let all = ["10.0.0.1", "192.168.1.1", "2001:db8::1"];
        assert_eq!(selected(&[], &[]), all);
        assert_eq!(selected(&["all"], &[]), all);
        assert_eq!(selected(&["0.0.0.0/0", "::/0"], &[]), all);
        assert_eq!(
            selected(&["192.168.0.0/16"], &[]),
            ["192.168.1.1", "2001:db8::1"]
        );
    }

    /// KP-VS-12; fails closed, unlike KP-WK-14.
    #[test]
    fn primary_selects_the_addresses_of_the_node_and_nothing_if_they_are_unknown() {
        let primary = ["192.168.1.1", "2001:db8::1"];
        assert_eq!(selected(&["primary"], &primary), primary);
        assert_eq!(
            selected(&["primary", "10.0.0.0/8"], &primary),
            ["10.0.0.1", "192.168.1.1", "2001:db8::1"]
        );
        assert_eq!(selected(&["primary"], &[]), Vec::<String>::new());
    }

    #[test]
    fn a_family_is_selected_as_a_whole_without_entries_or_by_an_entry_for_all() {
        let all = |entries: &[&str]| {
            let entries = entries.iter().map(|text| text.parse().unwrap());
            let addresses: NodePortAddresses = entries.collect();
            [Family::V4, Family::V6].map(|family| addresses.selects_all(family))
        };
        assert_eq!(all(&[]), [true, true]);
        assert_eq!(all(&["all"]), [true, true]);
        assert_eq!(all(&["primary"]), [false, false]);
        assert_eq!(all(&["primary", "::/0"]), [false, true]);
        assert_eq!(all(&["192.0.2.0/24"]), [false, true]);
    }

    #[test]
    fn loopback_addresses_are_never_selected_and_other_words_are_errors() {
        let none = Vec::<String>::new();
        assert_eq!(selected(&["127.0.0.0/8", "::1/128"], &[]), none);
        assert_eq!(selected(&["localhost"], &[]), none);
        for text in ["Primary", "10.0.0.1", ""] {
            assert!(text.parse::<NodePortEntry>().is_err(), "{text}");
        }
    }
}
