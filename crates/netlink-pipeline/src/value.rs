//! The types of values that attributes hold.

use std::borrow::Cow;

use crate::decode_error::DecodeError;

/// A type that an attribute can hold.
pub trait AttributeValue<'a>: Sized {
    /// Decodes the value; `what` names it in errors.
    fn read(bytes: &'a [u8], what: &'static str) -> Result<Self, DecodeError>;
}

/// Returns the first `N` bytes. A longer attribute is valid: the kernel may append fields.
fn first<const N: usize>(bytes: &[u8], what: &'static str) -> Result<[u8; N], DecodeError> {
    bytes.first_chunk().copied().ok_or(DecodeError::Short {
        what,
        need: N,
        have: bytes.len(),
    })
}

/// Unwraps a value that every kernel sends; `what` names it in the error.
pub fn require<T>(value: Option<T>, what: &'static str) -> Result<T, DecodeError> {
    value.ok_or(DecodeError::Missing { what })
}

/// Numbers in the host's byte order.
macro_rules! host_order {
    ($($number:ty),*) => {$(
        impl AttributeValue<'_> for $number {
            fn read(bytes: &[u8], what: &'static str) -> Result<Self, DecodeError> {
                first(bytes, what).map(Self::from_ne_bytes)
            }
        }
    )*};
}

host_order!(u8, u16, u32);

/// Numbers in network byte order.
macro_rules! network_order {
    ($($(#[$doc:meta])* $name:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(
            /// The number.
            pub $number,
        );

        impl AttributeValue<'_> for $name {
            fn read(bytes: &[u8], what: &'static str) -> Result<Self, DecodeError> {
                first(bytes, what).map(|bytes| Self(<$number>::from_be_bytes(bytes)))
            }
        }
    )*};
}

network_order! {
    /// A 16-bit number in network byte order.
    NetworkU16(u16);
    /// A 32-bit number in network byte order.
    NetworkU32(u32);
    /// A 64-bit number in network byte order.
    NetworkU64(u64);
}

/// A counter: 32 bits in older attributes, 64 in newer ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter(
    /// The count.
    pub u64,
);

impl AttributeValue<'_> for Counter {
    fn read(bytes: &[u8], what: &'static str) -> Result<Self, DecodeError> {
        match bytes.first_chunk() {
            Some(bytes) => Ok(Self(u64::from_ne_bytes(*bytes))),
            None => u32::read(bytes, what).map(|number| Self(number.into())),
        }
    }
}

/// Bytes without further decoding, such as an address.
impl<const N: usize> AttributeValue<'_> for [u8; N] {
    fn read(bytes: &[u8], what: &'static str) -> Result<Self, DecodeError> {
        first(bytes, what)
    }
}

/// Text that ends with a NUL. Names in the kernel are ASCII; other bytes are replaced, so that one malformed name does
/// not make a whole table unreadable.
impl<'a> AttributeValue<'a> for Cow<'a, str> {
    fn read(bytes: &'a [u8], _: &'static str) -> Result<Self, DecodeError> {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text))
    }
}

/// Nested attributes that are decoded only when needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(
    /// The undecoded bytes.
    pub &'a [u8],
);

impl<'a> AttributeValue<'a> for Raw<'a> {
    fn read(bytes: &'a [u8], _: &'static str) -> Result<Self, DecodeError> {
        Ok(Self(bytes))
    }
}
