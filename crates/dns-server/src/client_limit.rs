//! Limits the permits that clients hold at a time: all together, and each of them.

use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// How many times the share of one client the clients of an IPv6 network hold together. The pods of a node are in one
/// network (/64), and so are the addresses that a host may use beside its own.
const SHARES_OF_NETWORK: usize = 4;

/// A limit. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ClientLimit(Arc<Mutex<ClientCounts>>);

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// That of this client, or of its network.
    Client,
    /// That of all clients together.
    Total,
}

/// A permit of a client, which is returned when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct ClientPermit {
    limit: ClientLimit,
    client: IpAddr,
}

/// How many permits the clients hold.
#[derive(Debug)]
struct ClientCounts {
    most: usize,
    most_each: usize,
    in_use: usize,
    /// Only clients that hold a permit.
    by_client: FxHashMap<IpAddr, usize>,
    /// The IPv6 networks of these clients.
    by_network: FxHashMap<u64, usize>,
}

impl LimitReached {
    pub(crate) const ALL: [Self; 2] = [Self::Client, Self::Total];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Total => "total",
        }
    }
}

impl ClientLimit {
    /// At most `most` permits, and at most `most_each` for one client.
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self(Arc::new(Mutex::new(ClientCounts {
            most,
            most_each,
            in_use: 0,
            by_client: FxHashMap::default(),
            by_network: FxHashMap::default(),
        })))
    }

    /// Gives a permit to a client.
    pub(crate) fn acquire(&self, client: IpAddr) -> Result<ClientPermit, LimitReached> {
        let client = client.to_canonical();
        self.counts().take(client)?;
        Ok(ClientPermit {
            limit: self.clone(),
            client,
        })
    }

    /// How many permits clients hold.
    pub(crate) fn in_use(&self) -> usize {
        self.counts().in_use
    }

    fn counts(&self) -> MutexGuard<'_, ClientCounts> {
        // No code that holds the lock panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.limit.counts().release(self.client);
    }
}

impl ClientCounts {
    fn take(&mut self, client: IpAddr) -> Result<(), LimitReached> {
        let of_client = self.by_client.get(&client).copied();
        let network = network_of(client);
        let of_network = network.and_then(|network| self.by_network.get(&network).copied());
        if of_client.unwrap_or_default() >= self.most_each
            || of_network.unwrap_or_default() >= self.most_each * SHARES_OF_NETWORK
        {
            return Err(LimitReached::Client);
        }
        if self.in_use >= self.most {
            return Err(LimitReached::Total);
        }
        *self.by_client.entry(client).or_default() += 1;
        if let Some(network) = network {
            *self.by_network.entry(network).or_default() += 1;
        }
        self.in_use += 1;
        Ok(())
    }

    fn release(&mut self, client: IpAddr) {
        lower(&mut self.by_client, client);
        if let Some(network) = network_of(client) {
            lower(&mut self.by_network, network);
        }
        self.in_use = self.in_use.saturating_sub(1);
    }
}

/// Counts one less; without a count nothing is kept.
fn lower<K: Eq + Hash>(counts: &mut FxHashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut entry) = counts.entry(key) {
        let count = entry.get().saturating_sub(1);
        if count > 0 {
            entry.insert(count);
        } else {
            entry.remove();
        }
    }
}

/// The /64 of an IPv6 address.
fn network_of(client: IpAddr) -> Option<u64> {
    let IpAddr::V6(address) = client else {
        return None;
    };
    u64::try_from(address.to_bits() >> 64).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_client() {
        let limit = ClientLimit::new(8, 1);
        let _held = limit.acquire(address("10.244.1.7")).unwrap();
        let found = limit.acquire(address("::ffff:10.244.1.7"));
        assert_eq!(found.unwrap_err(), LimitReached::Client);
    }

    #[test]
    fn an_ipv6_client_leaves_shares_to_its_network_and_the_network_to_others() {
        let limit = ClientLimit::new(100, 3);
        let mut held = Vec::new();
        for client in ["fd00:1::1", "fd00:1::2", "fd00:1::", "fd00:1::4"] {
            held.extend((0..3).map(|_| limit.acquire(address(client)).unwrap()));
            let found = limit.acquire(address(client));
            assert_eq!(found.unwrap_err(), LimitReached::Client, "{client}");
        }
        for (client, is_refused) in [("fd00:1::5", true), ("fd00:1:0:1::5", false)] {
            let found = limit.acquire(address(client));
            assert_eq!(found.is_err(), is_refused, "{client}");
        }
        held.pop();
        assert!(limit.acquire(address("fd00:1::5")).is_ok());
        held.clear();
        assert_eq!(limit.in_use(), 0);
        assert!(limit.counts().by_network.is_empty());
    }

    /// A client that comes, or the permit that is dropped.
    #[derive(Debug, Clone)]
    enum Step {
        Come(u8),
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..5_u8).prop_map(Step::Come),
            2 => any::<usize>().prop_map(Step::Leave),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn every_client_gets_its_share_and_dropped_places_are_free(steps in steps()) {
            let (most, most_each) = (8, 3);
            let limit = ClientLimit::new(most, most_each);
            let mut permits: Vec<(u8, ClientPermit)> = Vec::new();
            for step in steps {
                match step {
                    Step::Come(client) => {
                        let own = permits.iter().filter(|(of, _)| *of == client).count();
                        let expected = match (own >= most_each, permits.len() >= most) {
                            (true, _) => Some(LimitReached::Client),
                            (false, true) => Some(LimitReached::Total),
                            (false, false) => None,
                        };
                        let found = limit.acquire([10, 244, 0, client].into());
                        prop_assert_eq!(found.as_ref().err(), expected.as_ref());
                        permits.extend(found.ok().map(|permit| (client, permit)));
                    }
                    Step::Leave(at) if !permits.is_empty() => {
                        drop(permits.swap_remove(at % permits.len()));
                    }
                    Step::Leave(_) => {}
                }
                prop_assert_eq!(limit.in_use(), permits.len());
            }
            drop(permits);
            prop_assert_eq!(limit.in_use(), 0);
            prop_assert!(limit.counts().by_client.is_empty());
        }
    }
}
