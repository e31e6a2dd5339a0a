//! The value of `dns --upstream`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::values;

/// The port of DNS.
pub const DNS_PORT: u16 = 53;

/// Where to ask about names that are not the cluster's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamArg {
    Server(SocketAddr),
    /// A file with `nameserver` lines, such as `/etc/resolv.conf`.
    ResolverFile(PathBuf),
}

impl UpstreamArg {
    /// A text with a slash is a path: no address has one.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let remedy = "write an address, such as 192.0.2.53, 192.0.2.53:53 or [2001:db8::53]:53, or the path of a file, such as /etc/resolv.conf or ./resolv.conf";
        if text.contains('/') {
            return Ok(Self::ResolverFile(text.into()));
        }
        let address = values::with_port(text, DNS_PORT).filter(|address| address.port() != 0);
        address.map(Self::Server).ok_or_else(|| remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_has_port_53_unless_another_is_given() {
        for (text, expected) in [
            ("192.0.2.53", Some("192.0.2.53:53")),
            ("192.0.2.53:5353", Some("192.0.2.53:5353")),
            ("2001:db8::53", Some("[2001:db8::53]:53")),
            ("[2001:db8::53]:5353", Some("[2001:db8::53]:5353")),
            ("192.0.2.53:0", None),
            ("dns.example.com", None),
            ("resolv.conf", None),
        ] {
            let expected = expected.map(|address| UpstreamArg::Server(address.parse().unwrap()));
            assert_eq!(UpstreamArg::parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn an_upstream_with_a_slash_is_a_file() {
        for text in ["/etc/resolv.conf", "./resolv.conf"] {
            let expected = UpstreamArg::ResolverFile(text.into());
            assert_eq!(UpstreamArg::parse(text), Ok(expected));
        }
    }
}
