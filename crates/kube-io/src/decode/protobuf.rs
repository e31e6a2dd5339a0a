//! Decodes protobuf of the API server: an object is in an envelope with its kind, and only the fields that conversion reads
//! are in the [tables](kinds).
//!
//! The tree is the one that the same object in JSON gives, as far as it is read. There are crates for protobuf, but they
//! want a type for every message, which would then be turned into the tree; the four wire types are less than that.

pub(super) mod kinds;
mod tree;
mod value;
mod wire;

use value::{bytes_of, text_in};
use wire::{Fields, Value};

use super::error::{DecodeError, garbled};
use super::page::Page;
use object_tree::{Node, Text};

/// What an envelope begins with (`protobuf.go` in apimachinery).
const MAGIC: &[u8] = b"k8s\0";

/// Reads one object.
pub(super) fn object(bytes: &[u8]) -> Result<Node, DecodeError> {
    let (kind, object) = open(bytes)?;
    tree::message(object, kinds::of(&kind)?)
}

/// Reads a page and hands its objects to `sink`.
pub(super) fn list(bytes: &[u8], sink: &mut dyn FnMut(Node)) -> Result<Page, DecodeError> {
    let (kind, list) = open(bytes)?;
    let Some(kind) = kind.strip_suffix("List") else {
        return Err(garbled(format!("a {kind} is no list")));
    };
    let table = kinds::of(kind)?;
    let mut page = None;
    for field in Fields::of(list) {
        match field? {
            (1, Value::Bytes(metadata)) => page = Some(list_meta(metadata)?),
            (2, Value::Bytes(object)) => sink(tree::message(object, table)?),
            _ => {}
        }
    }
    page.ok_or_else(|| garbled("a list without metadata"))
}

/// Reads a `WatchEvent`: its type, and its object.
pub(super) fn event(bytes: &[u8]) -> Result<(Text, Node), DecodeError> {
    let kind = text_in(bytes, 1)?;
    // A `RawExtension`, which holds nothing but the envelope.
    let extension = bytes_of(bytes, 2)?;
    Ok((kind, object(bytes_of(extension, 1)?)?))
}

/// The kind of what is in an envelope (`runtime.Unknown`), and its bytes.
fn open(envelope: &[u8]) -> Result<(Text, &[u8]), DecodeError> {
    let Some(envelope) = envelope.strip_prefix(MAGIC) else {
        return Err(garbled("an object without its envelope"));
    };
    let type_meta = bytes_of(envelope, 1)?;
    Ok((text_in(type_meta, 2)?, bytes_of(envelope, 2)?))
}

fn list_meta(bytes: &[u8]) -> Result<Page, DecodeError> {
    Ok(Page {
        resource_version: text_in(bytes, 2)?.into(),
        r#continue: text_in(bytes, 3)?.into(),
    })
}
