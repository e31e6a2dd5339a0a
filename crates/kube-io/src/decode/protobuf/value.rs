//! Reads single fields of a message by their numbers.

use object_tree::Text;

use super::wire::{Fields, Value};
use crate::decode::error::{DecodeError, garbled};

/// What is in the field `number`, which is always there.
pub(super) fn bytes_of(message: &[u8], number: u32) -> Result<&[u8], DecodeError> {
    let found = bytes_in(message, number)?;
    found.ok_or_else(|| garbled(format!("a message without its field {number}")))
}

/// What is in the field `number`, if it is there.
pub(super) fn bytes_in(message: &[u8], number: u32) -> Result<Option<&[u8]>, DecodeError> {
    let mut found = None;
    for field in Fields::of(message) {
        match field? {
            (at, Value::Bytes(bytes)) if at == number => found = Some(bytes),
            _ => {}
        }
    }
    Ok(found)
}

/// The text in the field `number`; an empty one may be left out.
pub(super) fn text_in(message: &[u8], number: u32) -> Result<Text, DecodeError> {
    bytes_in(message, number).map(|bytes| text(bytes.unwrap_or_default()))
}

/// A text. What is not UTF-8 becomes U+FFFD, as in JSON, though not always as many of them.
pub(super) fn text(bytes: &[u8]) -> Text {
    String::from_utf8_lossy(bytes).into_owned().into()
}
