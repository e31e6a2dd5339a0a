//! The servers of `--upstream`, some of which are in files as resolv.conf(5) describes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::args::{DNS_PORT, UpstreamArg};
use crate::exit::Failure;

/// A server, and where it is written.
#[derive(Debug, PartialEq, Eq)]
struct UpstreamServer {
    address: SocketAddr,
    place: String,
}

/// Returns the addresses of all servers, in the order in which they are written.
///
/// # Errors
/// A file cannot be read or is wrong, or a server is the one that listens on `listen`.
pub(super) fn read(
    upstreams: &[UpstreamArg],
    listen: SocketAddr,
) -> Result<Vec<SocketAddr>, Failure> {
    let mut servers = Vec::new();
    for upstream in upstreams {
        match upstream {
            UpstreamArg::Server(address) => servers.push(UpstreamServer {
                address: *address,
                place: format!("--upstream {address}"),
            }),
            UpstreamArg::ResolverFile(path) => servers.extend(read_file(path)?),
        }
    }
    if let Some(own) = servers
        .iter()
        .find(|server| reaches(server.address, listen))
    {
        return Err(Failure::input(format_args!(
            "{} is the address of --listen, so queries would go round in circles; name another server",
            own.place
        )));
    }
    Ok(servers.into_iter().map(|server| server.address).collect())
}

/// Whether a query to `server` arrives at the sockets of `listen`.
fn reaches(server: SocketAddr, listen: SocketAddr) -> bool {
    let to = destination(server.ip().to_canonical());
    let own = listen.ip().to_canonical();
    let takes_all = own.is_unspecified() && (own.is_ipv6() || to.is_ipv4());
    server.port() == listen.port() && (to == own || takes_all && to.is_loopback())
}

/// Where the kernel sends packets to an address: those to the unspecified one go to this host.
fn destination(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

fn read_file(path: &Path) -> Result<Vec<UpstreamServer>, Failure> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::input(format_args!(
            "--upstream {name}: {error}; name a file that this program may read, or an address"
        ))
    })?;
    // Comments may have any bytes.
    let text = String::from_utf8_lossy(&bytes);
    let servers = parse(&text).map_err(|error| {
        Failure::input(format_args!("{name}:{}: {}", error.line, error.message))
    })?;
    if servers.is_empty() {
        return Err(Failure::input(format_args!(
            "{name} has no line `nameserver ADDRESS`; add one, or write --upstream with an address, or leave it out"
        )));
    }
    let servers = servers.into_iter().map(|(line, address)| UpstreamServer {
        address: SocketAddr::new(address, DNS_PORT),
        place: format!("{name}:{line}: nameserver {address}"),
    });
    Ok(servers.collect())
}

#[derive(Debug, PartialEq, Eq)]
struct LineError {
    line: usize,
    message: String,
}

/// Returns the addresses of the `nameserver` lines, with the numbers of their lines. A resolver ignores the rest of such
/// a line, and lines with words that it does not know.
fn parse(text: &str) -> Result<Vec<(usize, IpAddr)>, LineError> {
    let mut servers = Vec::new();
    for (text, line) in text.lines().zip(1..) {
        let mut words = text.split_whitespace();
        if words.next() == Some("nameserver") {
            let word = words.next().unwrap_or_default();
            let address = word.parse().ok().ok_or_else(|| LineError {
                line,
                message: address_error(word),
            })?;
            servers.push((line, address));
        }
    }
    Ok(servers)
}

/// What is wrong with a word that is no address, and what to write.
fn address_error(word: &str) -> String {
    match word.split_once('%') {
        Some((_, interface)) => format!(
            "nameserver {word} is reached through the interface {interface} only, which is not supported; write --upstream with another server"
        ),
        None if word.is_empty() => {
            "nameserver has no address; write one, such as `nameserver 192.0.2.53`".to_owned()
        }
        None => format!(
            "nameserver {word} is no address; write one without a port, such as `nameserver 192.0.2.53`"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_are_those_of_nameserver_lines() {
        let text = "# nameserver 192.0.2.1\n; nameserver 192.0.2.2\nsearch example.com\n\n\
                    nameserver 192.0.2.53\nnameserver\t2001:db8::53   # second\n nameserver 192.0.2.54\n\
                    options edns0 trust-ad\nnameservers 192.0.2.3\n";
        let expected = [(5, "192.0.2.53"), (6, "2001:db8::53"), (7, "192.0.2.54")];
        let expected = expected.map(|(line, address)| (line, address.parse().unwrap()));
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn an_error_has_its_line_and_what_to_write() {
        for (text, line, words) in [
            ("\nnameserver\n", 2, "such as `nameserver 192.0.2.53`"),
            (
                "nameserver dns.example.com",
                1,
                "dns.example.com is no address",
            ),
            ("nameserver 192.0.2.53:53", 1, "without a port"),
            ("a\nb\nnameserver fe80::1%eth0", 3, "interface eth0 only"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(words), "{text}: {error:?}");
        }
    }

    #[test]
    fn a_server_on_a_socket_of_this_program_is_the_program_itself() {
        for (server, listen, expected) in [
            ("192.0.2.53:53", "192.0.2.53:53", true),
            ("192.0.2.53:53", "192.0.2.53:5353", false),
            ("192.0.2.53:53", "192.0.2.54:53", false),
            ("127.0.0.53:53", "0.0.0.0:53", true),
            ("127.0.0.53:53", "[::]:53", true),
            ("[::1]:53", "[::]:53", true),
            ("[::1]:53", "0.0.0.0:53", false),
            ("127.0.0.53:53", "127.0.0.1:53", false),
            ("192.0.2.53:53", "0.0.0.0:53", false),
            ("0.0.0.0:53", "127.0.0.1:53", true),
            ("0.0.0.0:53", "0.0.0.0:53", true),
            ("0.0.0.0:53", "[::]:53", true),
            ("0.0.0.0:53", "127.0.0.2:53", false),
            ("[::ffff:0.0.0.0]:53", "127.0.0.1:53", true),
            ("[::]:53", "[::1]:53", true),
            ("[::]:53", "[::]:53", true),
            ("[::]:53", "127.0.0.1:53", false),
        ] {
            let found = reaches(server.parse().unwrap(), listen.parse().unwrap());
            assert_eq!(found, expected, "{server} with {listen}");
        }
    }
}
