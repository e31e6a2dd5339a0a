//! Address families, transport protocols and address ranges.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IP address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of `address`.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Bits in an address of this family: 32 or 128.
    pub const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// A transport protocol that a Service port may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        })
    }
}

/// An address range such as `10.96.0.0/12`; host bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The range of `prefix` leading bits around `address`; `None` if `prefix` exceeds the family's bits.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        (prefix <= Family::of(address).bits()).then(|| Self {
            address: mask(address, prefix),
            prefix,
        })
    }

    /// The range that holds `address` alone.
    pub fn host(address: IpAddr) -> Self {
        Self {
            address,
            prefix: Family::of(address).bits(),
        }
    }

    /// The first address of the range.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits are fixed.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The family of the range.
    pub const fn family(&self) -> Family {
        Family::of(self.address)
    }

    /// Whether `address` lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        Family::of(address) == self.family() && mask(address, self.prefix) == self.address
    }
}

fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let keep = u32::MAX
                .checked_shl(u32::from(32_u8.saturating_sub(prefix)))
                .unwrap_or(0);
            IpAddr::V4((v4.to_bits() & keep).into())
        }
        IpAddr::V6(v6) => {
            let keep = u128::MAX
                .checked_shl(u32::from(128_u8.saturating_sub(prefix)))
                .unwrap_or(0);
            IpAddr::V6((v6.to_bits() & keep).into())
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// A text that is not an address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address range; write it as 10.96.0.0/12 or fd00:10::/112")]
pub struct ParseCidrError(String);

impl FromStr for Cidr {
    type Err = ParseCidrError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/');
        let parsed = parts
            .and_then(|(address, prefix)| Self::new(address.parse().ok()?, prefix.parse().ok()?));
        parsed.ok_or_else(|| ParseCidrError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_contains_its_addresses_and_no_others() {
        assert_eq!(cidr("10.96.3.4/16").to_string(), "10.96.0.0/16");
        assert!(cidr("10.96.0.0/16").contains("10.96.255.255".parse().unwrap()));
        assert!(!cidr("10.96.0.0/16").contains("10.97.0.0".parse().unwrap()));
        assert!(!cidr("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(cidr("fd00:10:96::/112").contains("fd00:10:96::ffff".parse().unwrap()));
        assert!(!cidr("fd00:10:96::/112").contains("fd00:10:96::1:0".parse().unwrap()));
    }

    #[test]
    fn the_widest_and_the_narrowest_prefix_work() {
        for text in ["0.0.0.0/0", "10.1.2.3/32", "::/0", "fd00::1/128"] {
            assert_eq!(cidr(text).to_string(), text);
            assert!(cidr(text).contains(cidr(text).address()));
        }
        let host = "10.1.2.3".parse().unwrap();
        assert_eq!(Cidr::host(host), cidr("10.1.2.3/32"));
    }

    #[test]
    fn what_is_no_range_is_an_error_with_the_text_in_it() {
        for text in [
            "10.96.0.0",
            "10.96.0.0/33",
            "::/129",
            "x/8",
            "10.96.0.0/",
            "10.96.0.0/-1",
        ] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
