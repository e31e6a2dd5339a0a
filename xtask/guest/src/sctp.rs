//! Opens one-to-one SCTP sockets, which the standard library's TCP types can read and write.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketType, bind, connect as join, ipproto, listen as wait_for, sockopt,
};

/// Number of associations that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens on one address.
pub(crate) fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = open(at)?;
    bind(&socket, &at)?;
    wait_for(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Connects to `target` from `port` of one address. A client that offers all of its addresses receives answers at
/// addresses that the virtual server does not know.
pub(crate) fn connect(target: SocketAddr, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let socket = open(target)?;
    bind(&socket, &SocketAddr::new(source(target)?, port))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    join(&socket, &target)?;
    Ok(socket.into())
}

fn open(of: SocketAddr) -> io::Result<OwnedFd> {
    let family = match of {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    Ok(rustix::net::socket(
        family,
        SocketType::STREAM,
        Some(ipproto::SCTP),
    )?)
}

/// Returns the source address that the kernel selects.
fn source(target: SocketAddr) -> io::Result<IpAddr> {
    let probe = UdpSocket::bind((crate::source::unspecified(target), 0))?;
    probe.connect(target)?;
    Ok(probe.local_addr()?.ip())
}
