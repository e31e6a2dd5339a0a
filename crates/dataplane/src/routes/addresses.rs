//! The addresses of this machine, and the choice of the node address.

use std::fmt;
use std::net::IpAddr;

use topology_core::model::{Family, IpNetwork, range_around};

use super::range::{covers, is_host};

/// One address on one link of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The link's name.
    pub link: String,
    /// The address itself.
    pub address: IpAddr,
    /// Length of its on-link prefix.
    pub prefix: u8,
    /// Whether the kernel calls its scope global.
    pub global: bool,
}

impl Interface {
    /// Whether the network that is on this link shares addresses with `range`.
    /// An address without a network of its own (a /32 or /128) shares nothing: its route is more
    /// specific than any range.
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

/// The node's address in each family, as far as there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeIps {
    pub v4: Option<IpAddr>,
    pub v6: Option<IpAddr>,
}

impl NodeIps {
    /// Returns the node's address in a family.
    pub fn of(&self, family: Family) -> Option<IpAddr> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}

/// Where the node's address may come from, best first. Only addresses this machine has count,
/// because the kernel refuses a route whose source is not its own.
pub struct Candidates<'a> {
    /// `--node-ip`.
    pub flags: &'a [IpAddr],
    /// InternalIP addresses of the Node object.
    pub node: &'a [IpAddr],
    /// What the kernel would send from along its default routes.
    pub default_route: &'a [IpAddr],
}

impl Candidates<'_> {
    /// Chooses one address for each family among `interfaces`; the last resort is the first global
    /// address of the machine.
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
