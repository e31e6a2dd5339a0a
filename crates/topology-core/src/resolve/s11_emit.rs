//! S11: the real servers in the order in which they enter the kernel, or why there are none.
//!
//! The order is by a hash of this node's name and the endpoint: a fresh `wrr` starts at the head of its list, and
//! nodes that all began with the same real server would hit it together (kubernetes/kubernetes #121591). The hash is
//! ours, so that the order is the same on every machine and in every version.

use std::net::IpAddr;

use super::Refusal;
use super::candidates::Candidate;
use super::categorize::is_usable;
use super::work::Work;
use crate::policy::PolicySource;
use crate::virtual_server::RealServer;

/// Lists the real servers.
pub(super) fn run(work: &mut Work<'_>) {
    let chosen = work
        .candidates
        .iter()
        .filter(|candidate| candidate.reason.is_chosen());
    let real = |candidate: &Candidate<'_>| RealServer {
        address: candidate.endpoint.address,
        port: candidate.port,
        weight: candidate.weight,
    };
    let seed = Fnv::default().bytes(work.me().node.as_bytes());
    let mut placed: Vec<(u64, RealServer)> = chosen
        .map(real)
        .map(|real| (position(seed, &real), real))
        .collect();
    placed.sort_unstable_by_key(|(position, real)| (*position, real.address, real.port));
    work.real_servers = placed.into_iter().map(|(_, real)| real).collect();
    if work.real_servers.is_empty() && work.refusal.is_none() {
        work.refusal = Some(refusal(work));
    }
}

fn position(seed: Fnv, real: &RealServer) -> u64 {
    let hash = match real.address {
        IpAddr::V4(address) => seed.bytes(&address.octets()),
        IpAddr::V6(address) => seed.bytes(&address.octets()),
    };
    hash.bytes(&real.port.to_be_bytes()).finish()
}

/// FNV-1a of 64 bits, with the last mixing of `SplitMix64` so that a single byte moves every bit.
#[derive(Clone, Copy)]
struct Fnv(u64);

impl Default for Fnv {
    /// The offset basis.
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Why nothing was chosen.
fn refusal(work: &Work<'_>) -> Refusal {
    if work.candidates.is_empty() {
        Refusal::NoEndpoints
    } else if !work
        .candidates
        .iter()
        .any(|candidate| is_usable(candidate.endpoint))
    {
        Refusal::NoneReady
    } else if work.source == PolicySource::TrafficPolicyLocal {
        Refusal::NoneLocal
    } else {
        Refusal::NoMatch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the test vectors of the FNV authors.
        assert_eq!(Fnv::default().bytes(b"").0, 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::default().bytes(b"a").0, 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv::default().bytes(b"foobar").0, 0x8594_4171_f739_67e8);
    }
}
