//! One connection of a client, over any of the protocols.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, ipproto, socket, sockopt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];
}

/// What a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The text of the server.
    Answer(String),
    Refused,
    Nothing,
}

/// Connects from `source` in the thread's namespace.
pub(crate) fn attempt(
    protocol: Protocol,
    source: IpAddr,
    target: SocketAddr,
    patience: Duration,
) -> Seen {
    let answer = match protocol {
        Protocol::Udp => datagram(source, target, patience),
        Protocol::Tcp | Protocol::Sctp => {
            stream(protocol, source, target, patience).and_then(|mut stream| text(&mut stream))
        }
    };
    seen(answer)
}

/// The status code of a health check.
pub(crate) fn check_health(source: IpAddr, target: SocketAddr, patience: Duration) -> Seen {
    let status = || {
        let mut stream = stream(Protocol::Tcp, source, target, patience)?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
        let answer = text(&mut stream)?;
        Ok(answer.split(' ').nth(1).unwrap_or_default().to_owned())
    };
    seen(status())
}

fn seen(answer: io::Result<String>) -> Seen {
    match answer {
        Ok(text) => Seen::Answer(text.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Seen::Refused,
        // The sender itself gets this error if its packet is dropped in the output hook.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Seen::Nothing,
        Err(error) if is_timeout(&error) => Seen::Nothing,
        Err(error) => Seen::Answer(format!("error: {error}")),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        || errno == Some(rustix::io::Errno::INPROGRESS)
}

fn stream(
    protocol: Protocol,
    source: IpAddr,
    target: SocketAddr,
    patience: Duration,
) -> io::Result<TcpStream> {
    let family = match target {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let kind = match protocol {
        Protocol::Sctp => ipproto::SCTP,
        Protocol::Tcp | Protocol::Udp => ipproto::TCP,
    };
    let socket: OwnedFd = socket(family, SocketType::STREAM, Some(kind))?;
    bind(&socket, &SocketAddr::new(chosen(source, target)?, 0))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    connect(&socket, &target)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(patience))?;
    Ok(stream)
}

/// What the server sends until it closes the connection.
fn text(stream: &mut TcpStream) -> io::Result<String> {
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The source address that the kernel chooses, if `source` is unspecified. An SCTP client offers all addresses to which it
/// is bound, and gets replies at addresses that the virtual server does not know.
fn chosen(source: IpAddr, target: SocketAddr) -> io::Result<IpAddr> {
    let probe = UdpSocket::bind((source, 0))?;
    probe.connect(target)?;
    Ok(probe.local_addr()?.ip())
}

fn datagram(source: IpAddr, target: SocketAddr, patience: Duration) -> io::Result<String> {
    let socket = UdpSocket::bind((source, 0))?;
    socket.set_read_timeout(Some(patience))?;
    socket.connect(target)?;
    match socket.send(b"?") {
        // IPVS took it in the output hook, and its ICMP message follows.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        sent => drop(sent?),
    }
    let mut answer = [0; 128];
    let length = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(answer.get(..length).unwrap_or_default()).into_owned())
}
