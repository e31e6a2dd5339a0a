//! Parses IP addresses, and refuses those that cannot be programmed.

use std::net::IpAddr;

use topology_core::model::{Family, parse_address};

use super::report::Report;
use object_tree::Field;

const REMEDY: &str = "write an IPv4 or IPv6 address, without a prefix length";

/// Returns the address in `field`. Warns if it is not an address.
pub(crate) fn parse(field: &Field<'_>, report: &mut Report) -> Option<IpAddr> {
    field.parse_with(parse_address, "an IP address", REMEDY, report)
}

/// Returns the address in `field` if traffic can be sent to it. The warning names what is skipped.
pub(crate) fn parse_usable(
    field: &Field<'_>,
    skipped: &str,
    report: &mut Report,
) -> Option<IpAddr> {
    let address = parse(field, report)?;
    let Some(problem) = problem(address) else {
        return Some(address);
    };
    report.warn(
        field,
        format!("{address} is {problem}; {skipped} is skipped"),
        "use an address that other machines can reach",
    );
    None
}

/// Whether the Service has a cluster IP of the family of `ip` (KP-IN-09). The warning says what `ip` is.
pub(crate) fn has_family(
    ip: IpAddr,
    cluster_ips: &[IpAddr],
    field: &Field<'_>,
    what: &str,
    report: &mut Report,
) -> bool {
    let family = Family::of(ip);
    let has_family = cluster_ips.iter().any(|other| Family::of(*other) == family);
    if !has_family {
        report.warn(
            field,
            format!("the Service has no {family} cluster IP; {what} {ip} is skipped"),
            format!("add {family} to spec.ipFamilies, or remove the address"),
        );
    }
    has_family
}

/// Why an address cannot be that of a Service or an endpoint: the rules of Kubernetes' validation
/// (`ValidateEndpointIP`), plus multicast, broadcast and IPv4 written as IPv6.
fn problem(address: IpAddr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("the unspecified address");
    }
    if address.is_loopback() {
        return Some("a loopback address, which is a different machine on each node");
    }
    if address.is_multicast() {
        return Some("a multicast address");
    }
    match address {
        IpAddr::V4(v4) if v4.is_link_local() => {
            Some("a link-local address, which no router forwards")
        }
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            Some("a link-local address, which no router forwards")
        }
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Some("an IPv4 address written as IPv6"),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_cannot_be_reached_are_named() {
        for bad in [
            "0.0.0.0",
            "::",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "169.254.1.1",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "::ffff:10.0.0.1",
        ] {
            assert!(problem(bad.parse().unwrap()).is_some(), "{bad}");
        }
        for good in [
            "10.0.0.1",
            "192.0.2.1",
            "1.1.1.1",
            "fd00::1",
            "2001:db8::1",
            "100.64.0.1",
        ] {
            assert_eq!(problem(good.parse().unwrap()), None, "{good}");
        }
    }
}
