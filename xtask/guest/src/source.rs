//! Chooses the source addresses and ports of the client's connections and datagrams.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port that needs no privilege.
const FIRST_PORT: u16 = 1024;

/// Returns where the source ports of this process begin: apart from those of a process that ran just before.
pub(crate) fn first_port() -> u16 {
    let spread = u64::from(std::process::id()) * 4001 % u64::from(u16::MAX - FIRST_PORT);
    u16::try_from(spread).map_or(FIRST_PORT, |spread| FIRST_PORT + spread)
}

/// Calls `bind` with a source port that this process did not use lately.
///
/// The kernel would choose at random, and for minutes IPVS sends a source port that it knows to the server of the
/// earlier connection.
pub(crate) fn next_free<T>(
    port: &AtomicU16,
    bind: impl Fn(u16) -> std::io::Result<T>,
) -> std::io::Result<T> {
    loop {
        match bind(port.fetch_add(1, Ordering::Relaxed).max(FIRST_PORT)) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
}

/// Returns the unspecified address of the same family.
pub(crate) fn unspecified(like: SocketAddr) -> IpAddr {
    match like {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
