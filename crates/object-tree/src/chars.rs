//! Decodes a byte stream into characters. Errors have the position of the byte.

use std::io::{self, BufRead};

use granit_parser::ErrorKind;

/// Decodes UTF-8 during the read. The parser skips a leading byte order mark.
pub(super) struct Chars<R> {
    reader: R,
    /// The number of bytes delivered so far, for errors.
    offset: u64,
}

impl<R: BufRead> Chars<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, offset: 0 }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let buffer = loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        let Some(&byte) = buffer.first() else {
            return Ok(None);
        };
        self.reader.consume(1);
        self.offset += 1;
        Ok(Some(byte))
    }

    /// Decodes the rest of a multi-byte character that starts with `first`.
    fn wide(&mut self, first: u8) -> Result<char, ErrorKind> {
        let length = match first {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return Err(self.not_utf8()),
        };
        let mut bytes = [first, 0, 0, 0];
        for slot in bytes.iter_mut().take(length).skip(1) {
            *slot = self
                .byte()
                .map_err(from_io)?
                .ok_or_else(|| self.not_utf8())?;
        }
        bytes
            .get(..length)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(|text| text.chars().next())
            .ok_or_else(|| self.not_utf8())
    }

    #[cold]
    fn not_utf8(&self) -> ErrorKind {
        ErrorKind::Custom(format!("not UTF-8 text (at byte {})", self.offset))
    }
}

impl<R: BufRead> Iterator for Chars<R> {
    type Item = Result<char, ErrorKind>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.byte() {
            Err(error) => Some(Err(from_io(error))),
            Ok(None) => None,
            Ok(Some(byte)) if byte.is_ascii() => Some(Ok(char::from(byte))),
            Ok(Some(byte)) => Some(self.wide(byte)),
        }
    }
}

fn from_io(error: io::Error) -> ErrorKind {
    ErrorKind::InputIo {
        error: error.into(),
    }
}
