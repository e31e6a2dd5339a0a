//! Reads single fields of a message by their numbers.

use object_tree::Text;

use super::wire::{Fields, Value};
use crate::decode::error::{DecodeError, decode_error};

/// Returns the required field `number`.
pub(super) fn bytes_of(message: &[u8], number: u32) -> Result<&[u8], DecodeError> {
    let found = bytes_in(message, number)?;
    found.ok_or_else(|| decode_error(format!("a message without its field {number}")))
}

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

/// Returns the text in the field `number`. A server may omit an empty one.
pub(super) fn text_in(message: &[u8], number: u32) -> Result<Text, DecodeError> {
    bytes_in(message, number).map(|bytes| text(bytes.unwrap_or_default()))
}

/// Replaces invalid UTF-8 with U+FFFD like JSON, but the number of replacement characters may
/// differ.
pub(super) fn text(bytes: &[u8]) -> Text {
    String::from_utf8_lossy(bytes).into_owned().into()
}
