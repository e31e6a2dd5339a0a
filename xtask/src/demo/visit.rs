//! What clients outside of the cluster saw at one address.

use std::net::{IpAddr, SocketAddr};

use guest_wire::RequestCounts;

/// Connections from outside of the cluster to one address.
pub(super) struct Visit {
    /// The `externalTrafficPolicy`.
    pub(super) policy: &'static str,
    /// The kind of the address.
    pub(super) kind: &'static str,
    pub(super) target: SocketAddr,
    /// The node that gets the connections.
    pub(super) node: &'static str,
    pub(super) counts: RequestCounts,
    /// The client address that the server should see; `None` if no server should be reached.
    pub(super) expected: Option<IpAddr>,
}

impl Visit {
    /// Returns the client addresses that the server saw.
    pub(super) fn seen(&self) -> Vec<&str> {
        let answers = self.counts.answers.keys();
        let seen = answers.filter_map(|answer| answer.strip_prefix("web "));
        seen.collect()
    }

    /// Returns whether every connection was answered and the server saw the expected address, or none was answered as
    /// expected.
    pub(super) fn is_as_expected(&self) -> bool {
        let RequestCounts {
            requests, failed, ..
        } = self.counts;
        match self.expected {
            Some(address) => failed == 0 && requests > 0 && self.seen() == [address.to_string()],
            None => failed == requests && requests > 0,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;

    /// A visit whose server saw `seen` for two connections, or one that nothing answered.
    pub(in crate::demo) fn visit(seen: Option<&str>, expected: Option<&str>) -> Visit {
        let mut counts = RequestCounts::default();
        for _ in 0..2 {
            let answer = seen.map(|address| format!("web {address}"));
            let answer = answer.ok_or_else(|| std::io::Error::other("timed out"));
            counts.record(answer, Duration::ZERO);
        }
        Visit {
            policy: "Local",
            kind: "node port",
            target: "192.0.2.11:30080".parse().unwrap(),
            node: "n1",
            counts,
            expected: expected.map(|address| address.parse().unwrap()),
        }
    }

    #[test]
    fn only_the_expected_source_address_and_the_expected_silence_are_right() {
        let client = Some("192.0.2.1");
        assert!(visit(client, client).is_as_expected());
        assert!(!visit(Some("192.0.2.11"), client).is_as_expected());
        assert!(!visit(None, client).is_as_expected());
        assert!(visit(None, None).is_as_expected());
        assert!(!visit(client, None).is_as_expected());
    }
}
