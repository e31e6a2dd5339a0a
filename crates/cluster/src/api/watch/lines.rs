//! A stream of bytes into lines.

use bytes::{Buf as _, Bytes, BytesMut};

/// Longer lines are no objects: etcd refuses what is longer than a few megabytes.
const LONGEST: usize = 64 << 20;

/// The bytes of a line that has not ended yet, and of lines that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: BytesMut,
    /// So many bytes at the start are known to hold no end of a line.
    searched: usize,
}

/// A line that does not end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > LONGEST {
            Err(TooLong)
        } else {
            Ok(())
        }
    }

    /// The next whole line, without its end; empty lines are left out.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        loop {
            let rest = self.bytes.get(self.searched..)?;
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.bytes.len();
                return None;
            };
            let line = self.bytes.split_to(self.searched + end);
            self.bytes.advance(1);
            self.searched = 0;
            if !line.is_empty() {
                return Some(line.freeze());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn however_bytes_are_cut_the_lines_are_the_same(
            lines in prop::collection::vec("[a-z]{0,9}", 0..20),
            cuts in prop::collection::vec(1_usize..7, 1..80),
        ) {
            let text = lines.join("\n") + "\n";
            let mut rest = text.as_bytes();
            let (mut reader, mut found) = (Lines::default(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                reader.push(now).unwrap();
                rest = later;
                while let Some(line) = reader.next() {
                    found.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            let expected: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::default();
        let part = vec![b'x'; LONGEST];
        assert_eq!(lines.push(&part), Ok(()));
        assert_eq!(lines.push(b"x"), Err(TooLong));
    }
}
