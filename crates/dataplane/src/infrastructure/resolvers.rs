//! Reads the resolvers of this node.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

/// The agent's pod has the node's resolvers (`dnsPolicy: Default`). The second file has those behind the stub resolver of
/// systemd, if it can be seen.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/// Most bytes of a file.
const LIMIT: u64 = 64 << 10;

/// Reads them; a file that cannot be read has none.
pub(super) fn read() -> BTreeSet<IpAddr> {
    let texts = FILES.iter().filter_map(|file| text(Path::new(file)));
    texts.flat_map(|text| parse(&text)).collect()
}

fn text(file: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(file).ok()?;
    file.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The name servers of a `resolv.conf(5)`, except those on loopback addresses, which no Service can have.
fn parse(text: &str) -> BTreeSet<IpAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = words
            .next()
            .filter(|word| *word == "nameserver")
            .and(words.next())?;
        // An IPv6 address may have a zone: `fe80::1%eth0`.
        address.split('%').next()?.parse().ok()
    });
    servers
        .filter(|server: &IpAddr| !server.is_loopback())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_servers_of_a_resolv_conf_are_read() {
        let text = "# nameserver 192.0.2.9\nsearch example.com\nnameserver 192.0.2.53\n\
                    nameserver\tfe80::1%eth0\n nameserver 2001:db8::53 # comment\nnameserver 127.0.0.53\n\
                    nameserver name\noptions edns0\n";
        let servers = parse(text);
        let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.53", "2001:db8::53", "fe80::1"]);
    }
}
