//! A netlink socket connected to the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::net::sockopt;

use crate::{Error, NetlinkProtocol, Options};

/// A socket connected to the kernel.
///
/// Use [`Connection`](crate::Connection) instead, unless the caller has a loop of its own, such as a benchmark that
/// sends prepared datagrams.
#[derive(Debug)]
pub struct Socket {
    // Never clone it: `Clone` copies the bare descriptor, and both copies close it.
    inner: netlink_sys::Socket,
    receive_buffer: usize,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// Acknowledgements come without the request's payload (`NETLINK_CAP_ACK`) and with explanations
    /// (`NETLINK_EXT_ACK`).
    pub fn open(protocol: NetlinkProtocol, options: &Options) -> Result<Self, Error> {
        let number = isize::try_from(protocol.number()).unwrap_or(isize::MAX);
        let mut inner = netlink_sys::Socket::new(number).map_err(Error::socket("socket"))?;
        let kernel = netlink_sys::SocketAddr::new(0, 0);
        inner.bind_auto().map_err(Error::socket("bind"))?;
        inner.connect(&kernel).map_err(Error::socket("connect"))?;
        inner
            .set_cap_ack(true)
            .map_err(Error::socket("NETLINK_CAP_ACK"))?;
        inner
            .set_ext_ack(true)
            .map_err(Error::socket("NETLINK_EXT_ACK"))?;
        if options.strict {
            inner
                .set_netlink_get_strict_chk(true)
                .map_err(Error::socket("NETLINK_GET_STRICT_CHK"))?;
        }
        let receive_buffer = enlarge(inner.as_fd(), options.receive_buffer)?;
        Ok(Self {
            inner,
            receive_buffer,
        })
    }

    /// The size of the receive buffer that the kernel set, in bytes as it accounts for them.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Sends a datagram. The kernel has processed it when this returns.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        loop {
            match self.inner.send(datagram, 0) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives a datagram into `buffer`, up to its capacity, and returns the datagram's full length.
    ///
    /// `ENOBUFS` means that replies were lost.
    pub fn receive(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.receive_with(buffer, 0)
    }

    /// Does the same, but fails with `WouldBlock` if no datagram is there.
    pub fn try_receive(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.receive_with(buffer, libc::MSG_DONTWAIT)
    }

    /// Opens a socket that also receives notifications of multicast groups.
    pub(crate) fn open_member(
        protocol: NetlinkProtocol,
        groups: &[u32],
        options: &Options,
    ) -> Result<Self, Error> {
        let socket = Self::open(protocol, options)?;
        for group in groups {
            let joined = socket.inner.add_membership(*group);
            joined.map_err(Error::socket("NETLINK_ADD_MEMBERSHIP"))?;
        }
        Ok(socket)
    }

    fn receive_with(&self, buffer: &mut Vec<u8>, flags: libc::c_int) -> io::Result<usize> {
        loop {
            buffer.clear();
            match self.inner.recv(buffer, flags | libc::MSG_TRUNC) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

/// Sets the receive buffer, beyond the system's limit if permitted, and returns the size that the kernel set.
fn enlarge(socket: BorrowedFd<'_>, bytes: usize) -> Result<usize, Error> {
    let failed = |errno: rustix::io::Errno| Error::Socket {
        call: "SO_RCVBUF",
        source: errno.into(),
    };
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, bytes).map_err(failed)?;
    }
    sockopt::socket_recv_buffer_size(socket).map_err(failed)
}
