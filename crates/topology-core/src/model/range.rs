//! Parses addresses, and address ranges in the format of `ServiceCIDR` and `--service-cidr`.

use std::net::{IpAddr, Ipv4Addr};

use ipnetwork::IpNetwork;

/// The error for a text that is not an address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address range; write it as 10.96.0.0/12 or fd00:10::/112")]
pub struct ParseRangeError(String);

/// Parses an address; `None` if the text has another format.
///
/// The numbers of an IPv4 address are decimal and may begin with zeros. The API server accepts such addresses in Services
/// and `EndpointSlices`, and kube-proxy reads them (`ParseIPSloppy` in `k8s.io/utils/net`).
pub fn parse_address(text: &str) -> Option<IpAddr> {
    let with_zeros = || ipv4_with_zeros(text).map(IpAddr::V4);
    text.parse().ok().or_else(with_zeros)
}

fn ipv4_with_zeros(text: &str) -> Option<Ipv4Addr> {
    let number = |digits: &str| {
        let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u8>().ok().filter(|_| is_decimal)
    };
    let numbers: Option<Vec<u8>> = text.split('.').map(number).collect();
    <[u8; 4]>::try_from(numbers?).ok().map(Ipv4Addr::from)
}

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
        range_around(parse_address(address)?, prefix.parse().ok()?)
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
    fn numbers_of_an_ipv4_address_may_begin_with_zeros() {
        let parsed = |text| parse_address(text).map(|address| address.to_string());
        for (text, expected) in [
            ("010.000.0.01", "10.0.0.1"),
            ("198.051.100.9", "198.51.100.9"),
            ("fd00::1", "fd00::1"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected));
        }
        for bad in [
            "",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.+1",
            "10.0.0.1.1",
            "010.0.0.1/8",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        assert_eq!(range("010.96.0.0/016").to_string(), "10.96.0.0/16");
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
