//! Counts the queries of each client for each name and type.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::rr::RecordType;
use rustc_hash::FxHashMap;
use topology_core::model::ObjectName;

/// What a client asks for in turns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TurnKey {
    pub(crate) client: IpAddr,
    pub(crate) service: ObjectName,
    pub(crate) record_type: RecordType,
    /// The name of the port; empty for the name of the Service.
    pub(crate) port: Arc<str>,
}

/// The number of queries of each client. If there are too many clients, all begin again.
#[derive(Debug)]
pub(crate) struct Turns {
    counts: FxHashMap<TurnKey, u64>,
    most: usize,
}

impl Turns {
    /// Counts at most `most` clients and names at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            counts: FxHashMap::default(),
            most,
        }
    }

    /// The next turn of a client. Each client and Service begins at its own place, so that clients
    /// that ask only once are spread, and the same one for all types, so that an answer of IPv4
    /// addresses is for the same level as the answer of IPv6 addresses that comes with it.
    pub(crate) fn next(&mut self, key: TurnKey) -> u64 {
        let start = start(&key);
        if self.counts.len() >= self.most && !self.counts.contains_key(&key) {
            self.counts.clear();
        }
        let count = self.counts.entry(key).or_default();
        let turn = start.wrapping_add(*count);
        *count += 1;
        turn
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

    #[test]
    fn a_client_counts_each_type_alone_from_the_same_start() {
        let mut turns = Turns::new(10);
        let first = turns.next(key(1, RecordType::A));
        assert_eq!(turns.next(key(1, RecordType::A)), first + 1);
        assert_eq!(turns.next(key(1, RecordType::AAAA)), first);
        assert_ne!(turns.next(key(2, RecordType::A)), first);
        assert_eq!(turns.next(key(1, RecordType::A)), first + 2);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut turns = Turns::new(2);
        let first = turns.next(key(1, RecordType::A));
        turns.next(key(2, RecordType::A));
        assert_eq!(turns.next(key(1, RecordType::A)), first + 1);
        turns.next(key(3, RecordType::A));
        assert_eq!(turns.counts.len(), 1);
        assert_eq!(turns.next(key(1, RecordType::A)), first);
    }
}
