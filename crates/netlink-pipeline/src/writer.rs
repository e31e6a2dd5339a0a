//! Writes netlink attributes.

use crate::attribute::{HEADER, align};
use crate::unknown::UnknownAttributes;

/// `NLA_F_NESTED`: the attribute holds attributes.
const NESTED: u16 = 0x8000;

/// Longest value of fixed size, in bytes: an address.
const LONGEST_FIXED: usize = 16;

/// Appends attributes to a message. Checks lengths: if something exceeds its length field, finishing the message fails;
/// a wrong length is never sent.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut Vec<u8>,
    too_long: bool,
}

impl<'a> Writer<'a> {
    /// Appends to `buffer`.
    pub fn new(buffer: &'a mut Vec<u8>) -> Self {
        Self {
            buffer,
            too_long: false,
        }
    }

    /// Appends bytes unchanged, such as a fixed header.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends an attribute with this value and padding. `kind` is written unchanged.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.framed(kind, |writer| writer.bytes(value));
    }

    /// Does the same for a value of fixed size, as most are: the compiler makes header, value and padding one copy of
    /// constant size.
    #[inline]
    pub fn fixed<const N: usize>(&mut self, kind: u16, value: [u8; N]) {
        const { assert!(N <= LONGEST_FIXED) };
        let mut bytes = [0; HEADER + LONGEST_FIXED];
        let (header, behind) = bytes.split_at_mut(HEADER);
        let length = u16::try_from(HEADER + N).unwrap_or_default();
        let ([l0, l1], [k0, k1]) = (length.to_ne_bytes(), kind.to_ne_bytes());
        header.copy_from_slice(&[l0, l1, k0, k1]);
        if let Some(place) = behind.first_chunk_mut() {
            *place = value;
        }
        let padded = bytes.get(..align(HEADER + N));
        self.buffer.extend_from_slice(padded.unwrap_or_default());
    }

    /// Appends a nested attribute. `fill` writes its attributes.
    pub fn nested(&mut self, number: u16, fill: impl FnOnce(&mut Self)) {
        self.framed(number | NESTED, fill);
    }

    /// Appends a text attribute, with a NUL at its end.
    pub fn text(&mut self, number: u16, text: &str) {
        self.framed(number, |out| {
            out.bytes(text.as_bytes());
            out.bytes(&[0]);
        });
    }

    /// Appends attributes that were read earlier, unchanged.
    pub fn unknown(&mut self, attributes: &UnknownAttributes) {
        for attribute in attributes {
            self.attribute(attribute.kind, &attribute.value);
        }
    }

    /// Whether something exceeded its length field.
    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long
    }

    fn framed(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.buffer.len();
        let [k0, k1] = kind.to_ne_bytes();
        self.buffer.extend_from_slice(&[0, 0, k0, k1]);
        fill(self);
        let length = self.buffer.len() - start;
        let Ok(short) = u16::try_from(length) else {
            self.too_long = true;
            return;
        };
        let header = self.buffer.get_mut(start..).unwrap_or_default();
        if let Some(place) = header.first_chunk_mut() {
            *place = short.to_ne_bytes();
        }
        if align(length) != length {
            self.buffer.resize(start + align(length), 0);
        }
    }
}
