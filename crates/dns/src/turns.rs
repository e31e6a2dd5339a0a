//! Counts the queries of each client for each name and type.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::rr::RecordType;
use rustc_hash::FxHashMap;
use topology_core::model::ObjectName;

use crate::question::DnsTransport;

/// How many truncated replies of one client and name may wait for their question over TCP.
const MOST_TRUNCATED: usize = 16;

/// What a client asks for in turns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TurnKey {
    pub(crate) client: IpAddr,
    pub(crate) service: ObjectName,
    pub(crate) record_type: RecordType,
    /// The name of the port; empty for the name of the Service.
    pub(crate) port: Arc<str>,
}

/// The turn of an answer, so that it can be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    key: TurnKey,
    pub(crate) number: u64,
}

/// What a client has asked for with one key.
#[derive(Debug, Default)]
struct AskedTurns {
    count: u64,
    /// Turns whose replies did not fit in a datagram.
    truncated: VecDeque<u64>,
}

/// The number of queries of each client. If there are too many clients, all begin again.
#[derive(Debug)]
pub(crate) struct Turns {
    asked: FxHashMap<TurnKey, AskedTurns>,
    most: usize,
    last: Option<Turn>,
}

impl Turns {
    /// Counts at most `most` keys at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            asked: FxHashMap::default(),
            most,
            last: None,
        }
    }

    /// The next turn of a client. Each client and Service begins at its own place, so that clients
    /// that ask only once are spread, and the same one for all types, so that the answers to a client
    /// that asks for IPv4 and IPv6 addresses each time are for the same level. After a question for one
    /// type alone, such as one that is sent again, they no longer are: each type counts alone, because a
    /// turn that was skipped or repeated would change its shares.
    ///
    /// A question over TCP repeats the turn of a truncated reply: the client asks it again. With the
    /// next turn it would get another level, and never one whose endpoints do not fit in a datagram.
    pub(crate) fn next(&mut self, key: TurnKey, transport: DnsTransport) -> u64 {
        let start = start(&key);
        if self.asked.len() >= self.most && !self.asked.contains_key(&key) {
            self.asked.clear();
        }
        let asked = self.asked.entry(key.clone()).or_default();
        let repeated = match transport {
            DnsTransport::Udp => None,
            DnsTransport::Tcp => asked.truncated.pop_front(),
        };
        let number = repeated.unwrap_or_else(|| {
            let number = start.wrapping_add(asked.count);
            asked.count += 1;
            number
        });
        self.last = Some(Turn { key, number });
        number
    }

    /// The turn of the last call of [`next`](Self::next), once.
    pub(crate) fn take_last(&mut self) -> Option<Turn> {
        self.last.take()
    }

    /// Repeats a turn in an answer over TCP.
    pub(crate) fn repeat(&mut self, turn: &Turn) {
        if let Some(asked) = self.asked.get_mut(&turn.key) {
            if asked.truncated.len() >= MOST_TRUNCATED {
                asked.truncated.pop_front();
            }
            asked.truncated.push_back(turn.number);
        }
    }
}

/// Leaves room for counting up.
fn start(key: &TurnKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key.client, &key.service).hash(&mut hasher);
    hasher.finish() >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(client: u8, record_type: RecordType) -> TurnKey {
        TurnKey {
            client: [10, 244, 0, client].into(),
            service: ObjectName::new("shop", "cart"),
            record_type,
            port: "".into(),
        }
    }

    fn next(turns: &mut Turns, client: u8, record_type: RecordType) -> u64 {
        turns.next(key(client, record_type), DnsTransport::Udp)
    }

    #[test]
    fn a_client_counts_each_type_alone_from_the_same_start() {
        let mut turns = Turns::new(10);
        let first = next(&mut turns, 1, RecordType::A);
        assert_eq!(next(&mut turns, 1, RecordType::A), first + 1);
        assert_eq!(next(&mut turns, 1, RecordType::AAAA), first);
        assert_ne!(next(&mut turns, 2, RecordType::A), first);
        assert_eq!(next(&mut turns, 1, RecordType::A), first + 2);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut turns = Turns::new(2);
        let first = next(&mut turns, 1, RecordType::A);
        next(&mut turns, 2, RecordType::A);
        assert_eq!(next(&mut turns, 1, RecordType::A), first + 1);
        next(&mut turns, 3, RecordType::A);
        assert_eq!(turns.asked.len(), 1);
        assert_eq!(next(&mut turns, 1, RecordType::A), first);
    }

    #[test]
    fn truncated_turns_are_repeated_over_tcp_in_their_order() {
        let mut turns = Turns::new(10);
        let over = |turns: &mut Turns, transport| turns.next(key(1, RecordType::A), transport);
        let first = over(&mut turns, DnsTransport::Udp);
        let truncated = turns.take_last().unwrap();
        assert_eq!(truncated.number, first);
        assert_eq!(over(&mut turns, DnsTransport::Udp), first + 1);
        let second = turns.take_last().unwrap();
        turns.repeat(&truncated);
        turns.repeat(&second);
        assert_eq!(over(&mut turns, DnsTransport::Udp), first + 2);
        assert_eq!(over(&mut turns, DnsTransport::Tcp), first);
        assert_eq!(over(&mut turns, DnsTransport::Tcp), first + 1);
        assert_eq!(over(&mut turns, DnsTransport::Tcp), first + 3);
        for _ in 0..=MOST_TRUNCATED {
            turns.repeat(&truncated);
        }
        let kept = &turns.asked[&key(1, RecordType::A)].truncated;
        assert_eq!(kept.len(), MOST_TRUNCATED);
    }
}
