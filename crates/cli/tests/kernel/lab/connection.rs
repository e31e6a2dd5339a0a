//! TCP connections of tests.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::shell::PATIENCE;

/// A connection from the calling thread's namespace.
pub(crate) fn try_connect(target: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&target.parse().unwrap(), Duration::from_secs(8))
}

/// The server's end of a connection.
pub(crate) fn other_end(listener: &TcpListener, of: &TcpStream) -> TcpStream {
    let client = of.local_addr().unwrap();
    loop {
        let (stream, from) = listener.accept().unwrap();
        if from == client {
            return stream;
        }
    }
}

/// Asserts that data passes in both directions.
pub(crate) fn talk(one: &TcpStream, other: &TcpStream) {
    for (mut from, mut to) in [(one, other), (other, one)] {
        to.set_read_timeout(Some(PATIENCE)).unwrap();
        from.write_all(b"word").unwrap();
        to.read_exact(&mut [0; 4])
            .expect("the connection continues");
    }
}
