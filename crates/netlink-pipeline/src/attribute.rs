//! Reads netlink attributes (`struct nlattr` in `include/uapi/linux/netlink.h`).

use crate::decode_error::DecodeError;

/// Bytes of an attribute's header.
pub(crate) const HEADER: usize = 4;
/// Attributes start at multiples of this many bytes.
const ALIGNMENT: usize = 4;
/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` are not part of the number.
const NUMBER_MASK: u16 = 0x3fff;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The type field as received, with its two flag bits.
    pub kind: u16,
    /// The value, without padding.
    pub value: &'a [u8],
}

impl Attribute<'_> {
    /// The attribute's number: `kind` without the flag bits.
    pub const fn number(&self) -> u16 {
        self.kind & NUMBER_MASK
    }
}

/// Iterates over the attributes in a run of bytes. Stops after the first error.
///
/// ```
/// use netlink_pipeline::Attributes;
///
/// let bytes = [6, 0, 1, 0, b'r', b'r', 0, 0];
/// let first = Attributes::new(&bytes).next().unwrap().unwrap();
/// assert_eq!((first.number(), first.value), (1, &b"rr"[..]));
/// ```
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Iterates over `bytes`, which start with the first attribute's header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Fewer bytes than a header are padding, as in the kernel's `nla_ok`.
        let (&[l0, l1, k0, k1], _) = self.rest.split_first_chunk::<HEADER>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let kind = u16::from_ne_bytes([k0, k1]);
        let bytes = std::mem::take(&mut self.rest);
        let Some(value) = bytes.get(HEADER..length) else {
            return Some(Err(DecodeError::Short {
                what: "an attribute",
                need: length.max(HEADER),
                have: bytes.len(),
            }));
        };
        self.rest = bytes.get(align(length)..).unwrap_or_default();
        Some(Ok(Attribute { kind, value }))
    }
}

/// Rounds up to the next multiple of four.
pub(crate) const fn align(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}
