//! Address fields of services and destinations.

use netlink_pipeline::{AttributeValue, DecodeError};

/// `union nf_inet_addr`, whose first four bytes are an IPv4 address. A kernel may send only those four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InetAddress(pub(crate) [u8; 16]);

impl AttributeValue<'_> for InetAddress {
    fn read(bytes: &[u8], what: &'static str) -> Result<Self, DecodeError> {
        if let Some(bytes) = bytes.first_chunk() {
            return Ok(Self(*bytes));
        }
        let [a, b, c, d] = <[u8; 4]>::read(bytes, what)?;
        Ok(Self([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    }
}
