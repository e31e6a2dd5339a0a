//! Parses address ranges in the format of `ServiceCIDR` and `--service-cidr`.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

/// The error for a text that is not an address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address range; write it as 10.96.0.0/12 or fd00:10::/112")]
pub struct ParseRangeError(String);

/// Parses an address and a prefix length, such as `10.96.0.0/12`. Host bits become zero.
///
/// `ipnetwork` also accepts a single address, and an IPv4 netmask after the slash. The API server refuses both, and so
/// does this function.
///
/// # Errors
///
/// The text has another format.
pub fn parse_range(text: &str) -> Result<IpNetwork, ParseRangeError> {
    let read = || {
        let (address, prefix) = text.split_once('/')?;
        range_around(address.parse().ok()?, prefix.parse().ok()?)
    };
    read().ok_or_else(|| ParseRangeError(text.to_owned()))
}

/// The range of addresses with the same first `prefix` bits as `address`; `None` if the family has fewer bits.
pub fn range_around(address: IpAddr, prefix: u8) -> Option<IpNetwork> {
    let network = IpNetwork::new(address, prefix).ok()?;
    IpNetwork::new(network.network(), prefix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> IpNetwork {
        parse_range(text).unwrap()
    }

    #[test]
    fn a_range_contains_its_addresses_and_no_others() {
        assert_eq!(range("10.96.3.4/16").to_string(), "10.96.0.0/16");
        assert_eq!(range("fd00:10::1:2/112").to_string(), "fd00:10::1:0/112");
        assert!(range("10.96.0.0/16").contains("10.96.255.255".parse().unwrap()));
        assert!(!range("10.96.0.0/16").contains("10.97.0.0".parse().unwrap()));
        assert!(!range("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(range("fd00:10:96::/112").contains("fd00:10:96::ffff".parse().unwrap()));
        assert!(!range("fd00:10:96::/112").contains("fd00:10:96::1:0".parse().unwrap()));
    }

    #[test]
    fn the_widest_and_the_narrowest_prefix_work() {
        for text in ["0.0.0.0/0", "10.1.2.3/32", "::/0", "fd00::1/128"] {
            assert_eq!(range(text).to_string(), text);
            assert!(range(text).contains(range(text).ip()));
        }
        let host: IpAddr = "10.1.2.3".parse().unwrap();
        assert_eq!(IpNetwork::from(host), range("10.1.2.3/32"));
    }

    #[test]
    fn an_invalid_range_is_an_error_with_its_text() {
        for text in [
            "10.96.0.0",
            "10.96.0.0/33",
            "10.96.0.0/255.240.0.0",
            "::/129",
            "x/8",
            "10.96.0.0/",
            "10.96.0.0/-1",
            "10.96.0.0/12/12",
        ] {
            let error = parse_range(text).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
