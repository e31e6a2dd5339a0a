//! Decompresses answers in parts, as they arrive: gzip (RFC 1952), the only compression of API
//! servers.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;

/// How many bytes are decompressed at a time. The output may be a thousand times as long.
const PIECE: usize = 16 << 10;

/// Decompresses parts. The server ends a gzip member at each flush, so that no event waits for the
/// next one (`perFlushGzipWriter` of apiserver's `pkg/endpoints/handlers/watch.go`).
pub(super) struct Inflater(MultiGzDecoder<Vec<u8>>);

impl Inflater {
    pub(super) fn new() -> Self {
        Self(MultiGzDecoder::new(Vec::new()))
    }

    /// Returns the output that is complete after `part`, which may be empty. Fails if it is more
    /// than `most` bytes.
    pub(super) fn next(&mut self, part: &[u8], most: usize) -> io::Result<Bytes> {
        for piece in part.chunks(PIECE) {
            self.0.write_all(piece)?;
            self.0.flush()?;
            if self.0.get_ref().len() > most {
                return Err(io::Error::other("it does not end"));
            }
        }
        Ok(std::mem::take(self.0.get_mut()).into())
    }

    /// Checks that the last member is complete and that its checksum is right.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.0.try_finish()
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 1 << 20;

    /// Compresses like a server at one flush.
    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.flush().unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_complete_member_is_decompressed_at_once() {
        let mut inflater = Inflater::new();
        for text in ["first".repeat(40_000), "second".to_owned()] {
            let decompressed = inflater.next(&member(text.as_bytes()), MOST).unwrap();
            assert_eq!(decompressed, text);
        }
        inflater.end().unwrap();
    }

    #[test]
    fn the_start_of_a_member_is_decompressed_before_its_end() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
        let member = member(&text);
        let half = &member[..member.len() / 2];
        let decompressed = Inflater::new().next(half, MOST).unwrap();
        assert!(
            decompressed.len() > text.len() / 4,
            "{}",
            decompressed.len()
        );
        assert!(text.starts_with(&decompressed));
    }

    #[test]
    fn changed_or_truncated_input_is_an_error() {
        let whole = member(b"some text");
        let mut changed = whole.clone();
        let checksum = changed.len() - 6;
        changed[checksum] ^= 1;
        for sent in [&changed[..], &whole[..checksum]] {
            let mut inflater = Inflater::new();
            inflater.next(sent, MOST).unwrap();
            let ended = inflater.end();
            assert!(ended.is_err(), "{ended:?}");
        }
    }

    #[test]
    fn output_above_the_limit_is_an_error() {
        let zeros = member(&vec![0; 40 << 20]);
        let decompressed = Inflater::new().next(&zeros, MOST);
        assert!(decompressed.is_err(), "{} bytes", zeros.len());
    }

    proptest! {
        #[test]
        fn parts_of_any_size_give_the_same_output(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 0..8),
            size in 1_usize..5_000,
        ) {
            let sent: Vec<u8> = texts.iter().flat_map(|text| member(text)).collect();
            let mut inflater = Inflater::new();
            let mut decompressed = Vec::new();
            for part in sent.chunks(size) {
                decompressed.extend_from_slice(&inflater.next(part, MOST).unwrap());
            }
            prop_assert!(texts.is_empty() || inflater.end().is_ok());
            prop_assert_eq!(decompressed, texts.concat());
        }

        #[test]
        fn any_input_gives_output_or_an_error(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
            well_begun: bool,
        ) {
            let mut inflater = Inflater::new();
            if well_begun {
                let begun = inflater.next(&member(b"begun"), MOST);
                prop_assert_eq!(begun.unwrap(), Bytes::from_static(b"begun"));
            }
            for part in parts {
                if inflater.next(&part, MOST).is_err() {
                    break;
                }
            }
        }
    }
}
