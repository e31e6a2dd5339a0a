//! The few parts of DNS messages that are needed to measure.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The headless Service whose endpoint changes, and its name.
pub(super) const CHANGING: &str = "changing";
pub(super) const CHANGING_NAME: &str = "changing.bench.svc.cluster.local";

pub(super) fn connected_to(server: SocketAddr, timeout: Duration) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(timeout))?;
    Ok(socket)
}

/// Asks for the IPv4 addresses of a name, and returns the answer; `None` without one, or if it has no records.
pub(super) fn answer(socket: &UdpSocket, name: &str) -> Option<Vec<u8>> {
    socket.send(&question(7, name)).ok()?;
    let mut buffer = vec![0; 4_096];
    let length = socket.recv(&mut buffer).ok()?;
    buffer.truncate(length);
    (Head::read(&buffer)?.records > 0).then_some(buffer)
}

/// Whether the bytes of an address are in an answer; servers compress names in different ways.
pub(super) fn has_address(answer: &[u8], address: Ipv4Addr) -> bool {
    answer.windows(4).any(|bytes| *bytes == address.octets())
}

/// The fields of an answer's header that are checked.
pub(super) struct Head {
    pub(super) id: u16,
    pub(super) code: u8,
    pub(super) records: u16,
}

impl Head {
    pub(super) fn read(answer: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = answer.get(at..at + 2)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        Some(Self {
            id: number(0)?,
            code: answer.get(3)? & 0xf,
            records: number(6)?,
        })
    }
}

/// Returns a message that asks for the IPv4 addresses of a name.
pub(super) fn question(id: u16, name: &str) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    // Recursion desired; one question.
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        message.extend(u8::try_from(label.len()));
        message.extend(label.as_bytes());
    }
    // The root; type A, class IN.
    message.extend([0, 0, 1, 0, 1]);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_the_labels_of_its_name() {
        let message = question(0x0102, "a.bc");
        let expected = b"\x01\x02\x01\0\0\x01\0\0\0\0\0\0\x01a\x02bc\0\0\x01\0\x01";
        assert_eq!(message, expected);
        let head = Head::read(b"\x01\x02\x85\x03\0\x01\0\x05").unwrap();
        assert_eq!((head.id, head.code, head.records), (0x0102, 3, 5));
        assert!(Head::read(b"\x01\x02\x85").is_none());
        let [found, other] = [[1, 2, 1, 0], [1, 2, 0, 1]].map(Ipv4Addr::from);
        assert!(has_address(&message, found) && !has_address(&message, other));
    }
}
