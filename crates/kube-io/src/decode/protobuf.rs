//! Decodes protobuf of the API server. An object is in an envelope with its kind. Only the fields
//! that the conversion reads are in the [tables](kinds).
//!
//! The tree is the same as from JSON, for the fields that are read. Protobuf crates require a type
//! for every message, which would then be converted into the tree. Reading the four wire types is
//! less code.

pub(super) mod kinds;
mod tree;
mod value;
mod wire;

use value::{bytes_of, text_in};
use wire::{Fields, Value};

use super::error::{DecodeError, decode_error};
use super::page::Page;
use object_tree::{Node, Text};

/// The first bytes of an envelope (`protobuf.go` in apimachinery).
const MAGIC: &[u8] = b"k8s\0";

pub(super) fn object(bytes: &[u8]) -> Result<Node, DecodeError> {
    let (kind, object) = open(bytes)?;
    tree::message(object, kinds::of(&kind)?)
}

/// Reads a page and passes its objects to `sink`.
pub(super) fn list(bytes: &[u8], sink: &mut dyn FnMut(Node)) -> Result<Page, DecodeError> {
    let (kind, list) = open(bytes)?;
    let Some(kind) = kind.strip_suffix("List") else {
        return Err(decode_error(format!("a {kind} is not a list")));
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
    page.ok_or_else(|| decode_error("a list without metadata"))
}

/// Reads a `WatchEvent`: its type, and its object.
pub(super) fn event(bytes: &[u8]) -> Result<(Text, Node), DecodeError> {
    let kind = text_in(bytes, 1)?;
    // A `RawExtension`, which contains only the envelope.
    let extension = bytes_of(bytes, 2)?;
    Ok((kind, object(bytes_of(extension, 1)?)?))
}

/// Returns the kind and the bytes of the object in an envelope (`runtime.Unknown`).
fn open(envelope: &[u8]) -> Result<(Text, &[u8]), DecodeError> {
    let Some(envelope) = envelope.strip_prefix(MAGIC) else {
        return Err(decode_error("an object without its envelope"));
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
