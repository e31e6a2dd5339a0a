//! One connection of a client to the echo server.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection to the echo server.
pub(super) struct EchoConnection(TcpStream);

impl EchoConnection {
    /// Connects. Every later wait for an answer has the same limit.
    pub(super) fn open(target: SocketAddr, limit: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&target, limit)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(limit))?;
        Ok(Self(stream))
    }

    /// Sends `count` segments of one byte and waits until all bytes are back.
    pub(super) fn exchange(&mut self, count: u8) -> io::Result<()> {
        for _ in 0..count {
            self.0.write_all(&[0])?;
        }
        let mut answer = vec![0; usize::from(count)];
        self.0.read_exact(&mut answer)
    }
}

/// Opens a connection, exchanges one byte and closes it.
pub(super) fn visit(target: SocketAddr, limit: Duration) -> io::Result<()> {
    EchoConnection::open(target, limit)?.exchange(1)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::super::echo;
    use super::*;

    #[test]
    fn every_byte_comes_back_on_any_number_of_connections() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let limit = Duration::from_secs(20);
        let server = std::thread::spawn(move || echo::serve_one(&listener));
        let mut connection = EchoConnection::open(target, limit).unwrap();
        connection.exchange(8).unwrap();
        connection.exchange(1).unwrap();
        drop(connection);
        server.join().unwrap().unwrap();
    }
}
