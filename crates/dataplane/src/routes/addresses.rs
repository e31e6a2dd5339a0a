//! The addresses of this node, and the choice of the node address.

use std::fmt;
use std::net::IpAddr;

use topology_core::model::{Family, IpNetwork, range_around};

use super::range::{covers, is_host};

/// An address on a link of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub link: String,
    pub address: IpAddr,
    /// Length of the on-link prefix.
    pub prefix: u8,
    /// Whether its scope is global.
    pub global: bool,
}

impl Interface {
    /// Whether the on-link network shares addresses with `range`.
    ///
    /// An address without a network (a /32 or /128) shares none: its route is more specific than any range.
    pub fn network_overlaps(&self, range: &IpNetwork) -> bool {
        let Some(network) = range_around(self.address, self.prefix) else {
            return false;
        };
        !is_host(&network)
            && !self.address.is_loopback()
            && (covers(&network, range) || covers(range, &network))
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} of link {}", self.address, self.prefix, self.link)
    }
}

/// The node's address in each family, if there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeIps {
    pub v4: Option<IpAddr>,
    pub v6: Option<IpAddr>,
}

impl NodeIps {
    pub fn of(&self, family: Family) -> Option<IpAddr> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// Sources of the node address, by priority. An address counts only if this node has it, because the kernel refuses a
/// route with another source.
pub struct Candidates<'a> {
    /// The option `--node-ip`.
    pub flags: &'a [IpAddr],
    /// The addresses of the Node object.
    pub node: &'a [IpAddr],
    /// The source addresses of the default routes.
    pub default_route: &'a [IpAddr],
}

impl Candidates<'_> {
    /// Chooses one address for each family from `interfaces`. The last resort is the node's first global address.
    pub fn choose(&self, interfaces: &[Interface]) -> NodeIps {
        let choose = |family: Family| {
            let here = |ip: &&IpAddr| interfaces.iter().any(|interface| interface.address == **ip);
            let global = interfaces
                .iter()
                .filter(|i| i.global && !i.address.is_loopback())
                .map(|i| &i.address);
            self.flags
                .iter()
                .chain(self.node)
                .chain(self.default_route)
                .filter(here)
                .chain(global)
                .copied()
                .find(|ip| Family::of(*ip) == family)
        };
        NodeIps {
            v4: choose(Family::V4),
            v6: choose(Family::V6),
        }
    }
}
