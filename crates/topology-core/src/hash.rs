//! A hash that is the same on every machine and in every version, and the order of endpoints that depends on it.

use std::net::IpAddr;

/// The position of an endpoint in the order of the node `me`. Each node has its own order.
pub(crate) fn position(me: &str, address: IpAddr, port: u16) -> u64 {
    Seed::of(me).position(address, port)
}

/// The state of the hash after the node's name.
#[derive(Clone, Copy)]
pub(crate) struct Seed(Fnv);

impl Seed {
    pub(crate) fn of(me: &str) -> Self {
        Self(Fnv::default().bytes(me.as_bytes()))
    }

    pub(crate) fn position(self, address: IpAddr, port: u16) -> u64 {
        let hash = match address {
            IpAddr::V4(address) => self.0.bytes(&address.octets()),
            IpAddr::V6(address) => self.0.bytes(&address.octets()),
        };
        hash.bytes(&port.to_be_bytes()).finish()
    }
}

/// FNV-1a of 64 bits, with the final mixing step of `SplitMix64`, so that each byte changes all bits.
#[derive(Clone, Copy)]
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    /// The offset basis.
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    pub(crate) fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
