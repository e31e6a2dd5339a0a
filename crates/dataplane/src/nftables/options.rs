//! Options of the rules: how they recognize the clients of Services, whose connections to cluster IPs they masquerade,
//! and whether ARP requests are dropped.

use std::fmt;
use std::sync::Arc;

use super::family::TableFamily;

/// What the configuration of the node decides about the rules. A change replaces our tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleOptions {
    pub local_pods: LocalPods,
    /// Whose connections to cluster IPs of IPv4 are masqueraded.
    pub masquerade_v4: Masquerade,
    /// The same for IPv6.
    pub masquerade_v6: Masquerade,
    pub arp: ArpRequests,
}

/// What becomes of ARP requests for Service addresses that are on no link of this node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArpRequests {
    #[default]
    Dropped,
    /// The kernel answers them, because the addresses are local.
    Answered,
}

impl RuleOptions {
    pub(super) const fn masquerade(&self, family: TableFamily) -> Masquerade {
        match family {
            TableFamily::Ip => self.masquerade_v4,
            TableFamily::Ip6 => self.masquerade_v6,
            TableFamily::Arp => Masquerade::Nothing,
        }
    }
}

/// How a packet of a pod of this node is recognized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LocalPods {
    /// Its source address is in the set `inside`.
    #[default]
    BySource,
    /// It came in on such a link.
    ByLink(Links),
}

/// The connections to cluster IPs that are masqueraded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Masquerade {
    #[default]
    Nothing,
    /// All that are not of a pod of this node.
    NotLocal,
    Everything,
}

/// Links by their name. Prints as a string of nft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Links {
    Named(LinkName),
    /// All whose name begins with it.
    WithPrefix(LinkName),
}

impl fmt::Display for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "\"{name}\""),
            Self::WithPrefix(prefix) => write!(f, "\"{prefix}*\""),
        }
    }
}

/// The name of a link, or the beginning of one, without characters that nft gives a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkName(Arc<str>);

/// Not a name for [`LinkName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the name of a link: use up to 15 letters, digits and the characters . _ - @ +; `ip link` lists links"
)]
pub struct ParseLinkNameError(String);

impl std::str::FromStr for LinkName {
    type Err = ParseLinkNameError;

    /// `IFNAMSIZ` of `linux/if.h` is 16 with the final zero.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte);
        if (1..16).contains(&text.len()) && text.bytes().all(is_allowed) {
            Ok(Self(text.into()))
        } else {
            Err(ParseLinkNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_strings_of_nft_and_other_characters_are_refused() {
        let name = |text: &str| text.parse::<LinkName>();
        let links = Links::WithPrefix(name("veth").unwrap());
        assert_eq!(links.to_string(), "\"veth*\"");
        let links = Links::Named(name("eth0.100@x").unwrap());
        assert_eq!(links.to_string(), "\"eth0.100@x\"");
        for text in ["", "a*", "a\"", "a b", "a/b", "0123456789abcdef"] {
            assert!(name(text).is_err(), "{text:?}");
        }
    }
}
