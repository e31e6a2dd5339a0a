//! Splits a stream of bytes into events: lines of JSON, or protobuf messages with a length prefix.

use bytes::{Buf as _, Bytes, BytesMut};

use super::encoding::Encoding;

/// The longest part. etcd refuses objects above a few megabytes.
const LONGEST: usize = 64 << 20;

/// The length prefix of a message: four bytes, big-endian (`LengthDelimitedFramer` of
/// apimachinery).
const LENGTH: usize = 4;

/// Bytes that were not taken yet.
#[derive(Debug)]
pub struct Framer {
    form: Encoding,
    bytes: BytesMut,
    /// The number of bytes at the start that contain no end of line.
    searched: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Framer {
    pub fn of(form: Encoding) -> Self {
        Self {
            form,
            bytes: BytesMut::new(),
            searched: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.bytes.extend_from_slice(bytes);
        let announced = match self.form {
            Encoding::Json => None,
            Encoding::Protobuf => self.announced(),
        };
        if self.bytes.len().max(announced.unwrap_or_default()) > LONGEST {
            Err(TooLong)
        } else {
            Ok(())
        }
    }

    /// Returns the next complete part without its separator. Skips empty parts.
    pub fn next_part(&mut self) -> Option<Bytes> {
        loop {
            let part = match self.form {
                Encoding::Json => self.line(),
                Encoding::Protobuf => self.message(),
            }?;
            if !part.is_empty() {
                return Some(part.freeze());
            }
        }
    }

    fn line(&mut self) -> Option<BytesMut> {
        let rest = self.bytes.get(self.searched..)?;
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let line = self.bytes.split_to(self.searched + end);
        self.bytes.advance(1);
        self.searched = 0;
        Some(line)
    }

    fn message(&mut self) -> Option<BytesMut> {
        let length = self.announced()?;
        if self.bytes.len() < LENGTH.saturating_add(length) {
            return None;
        }
        self.bytes.advance(LENGTH);
        Some(self.bytes.split_to(length))
    }

    /// The length of the next message.
    fn announced(&self) -> Option<usize> {
        let length = self.bytes.first_chunk::<LENGTH>()?;
        usize::try_from(u32::from_be_bytes(*length)).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The parts, if the bytes come in pieces of these lengths.
    fn found(form: Encoding, mut rest: &[u8], cuts: &[usize]) -> Vec<String> {
        let (mut parts, mut found) = (Framer::of(form), Vec::new());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            parts.push(now).unwrap();
            rest = later;
            while let Some(part) = parts.next_part() {
                found.push(String::from_utf8(part.to_vec()).unwrap());
            }
        }
        found
    }

    fn behind_its_length(text: &str) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap();
        [&length.to_be_bytes(), text.as_bytes()].concat()
    }

    proptest! {
        #[test]
        fn the_parts_are_the_same_for_any_split_of_the_bytes(
            texts in prop::collection::vec("[a-z]{0,9}", 0..20),
            cuts in prop::collection::vec(1_usize..7, 1..80),
        ) {
            let lines = texts.join("\n") + "\n";
            let messages: Vec<u8> = texts.iter().flat_map(|text| behind_its_length(text)).collect();
            let expected: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
            prop_assert_eq!(found(Encoding::Json, lines.as_bytes(), &cuts), &*expected);
            prop_assert_eq!(found(Encoding::Protobuf, &messages, &cuts), expected);
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Framer::of(Encoding::Json);
        let part = vec![b'x'; LONGEST];
        assert_eq!(lines.push(&part), Ok(()));
        assert_eq!(lines.push(b"x"), Err(TooLong));
    }

    #[test]
    fn a_too_long_length_prefix_is_refused_before_the_message() {
        let mut messages = Framer::of(Encoding::Protobuf);
        assert_eq!(messages.push(&[255, 255, 255]), Ok(()));
        assert_eq!(messages.push(&[255]), Err(TooLong));
    }
}
