//! Limits the permits that clients hold at a time: all together, and each of them.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// The bits of an IPv6 address that name a client: a pod may use every address of its /64.
const IPV6_CLIENT_BITS: u32 = 64;

/// A limit. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ClientLimit(Arc<Mutex<ClientCounts>>);

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// That of this client.
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
        })))
    }

    /// Gives a permit to a client.
    pub(crate) fn acquire(&self, client: IpAddr) -> Result<ClientPermit, LimitReached> {
        let client = client_of(client);
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
        let of_client = self.by_client.get(&client).copied().unwrap_or_default();
        if of_client >= self.most_each {
            return Err(LimitReached::Client);
        }
        if self.in_use >= self.most {
            return Err(LimitReached::Total);
        }
        self.by_client.insert(client, of_client + 1);
        self.in_use += 1;
        Ok(())
    }

    fn release(&mut self, client: IpAddr) {
        let of_client = self.by_client.get(&client).copied().unwrap_or_default();
        if of_client > 1 {
            self.by_client.insert(client, of_client - 1);
        } else {
            self.by_client.remove(&client);
        }
        self.in_use = self.in_use.saturating_sub(1);
    }
}

/// The address that stands for a client: an IPv4 address, or the first of a /64.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << (128 - IPV6_CLIENT_BITS));
            Ipv6Addr::from_bits(network).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_ipv6_client_is_its_64_and_a_mapped_address_is_the_ipv4_client() {
        for (address, expected) in [
            ("10.244.1.7", "10.244.1.7"),
            ("::ffff:10.244.1.7", "10.244.1.7"),
            ("fd00:1:2:3:4:5:6:7", "fd00:1:2:3::"),
            ("fd00:1:2:3::", "fd00:1:2:3::"),
            ("fd00:1:2:4::1", "fd00:1:2:4::"),
        ] {
            let found = client_of(address.parse().unwrap());
            assert_eq!(found.to_string(), expected, "{address}");
        }
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
