//! Reads the fields of a message from its bytes
//! (<https://protobuf.dev/programming-guides/encoding>).

use crate::decode::error::{DecodeError, decode_error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number or a boolean.
    Number(u64),
    /// A text, or another message.
    Bytes(&'a [u8]),
    /// Four or eight bytes. No field that is read here has this type.
    Fixed,
}

/// The fields of a message with their numbers, in order. Ends after an error.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).ok()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.fixed(8)?,
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.fixed(4)?,
            _ => return None,
        };
        Some((number, value))
    }

    fn fixed(&mut self, length: usize) -> Option<Value<'a>> {
        self.take(length).map(|_bytes| Value::Fixed)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a varint: seven bits in each byte, the lowest first; the eighth bit is set if another
    /// byte follows.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| decode_error("a message that is cut off, or not a message")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Vec<Option<(u32, Value<'_>)>> {
        Fields::of(bytes).map(Result::ok).collect()
    }

    #[test]
    fn the_examples_of_the_format_are_read() {
        // `int32 a = 1` with 150, and `string b = 2` with "testing".
        let number = [0x08, 0x96, 0x01];
        assert_eq!(fields(&number), [Some((1, Value::Number(150)))]);
        let text = b"\x12\x07testing";
        assert_eq!(fields(text), [Some((2, Value::Bytes(b"testing")))]);
        let minus_two = [8, 0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(fields(&minus_two), [Some((1, Value::Number(u64::MAX - 1)))]);
        let others = [0x0d, 1, 2, 3, 4, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x18, 1];
        let read = [(1, Value::Fixed), (2, Value::Fixed), (3, Value::Number(1))];
        assert_eq!(fields(&others), read.map(Some));
    }

    #[test]
    fn truncated_fields_and_unknown_types_end_in_one_error() {
        let endless = [&[0x08][..], &[0xff; 20]].concat();
        for bytes in [
            &[0x08][..],
            &[0x12, 7, b't'],
            &[0x0d, 1, 2],
            &[0x0b, 1],
            &[0x80],
            &endless,
        ] {
            assert_eq!(fields(bytes), [None], "{bytes:?}");
        }
    }
}
