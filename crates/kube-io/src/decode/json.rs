//! Decodes JSON. Skips large unused fields: `managedFields` and the images of a Node.

mod entries;
mod event;
mod list;
mod tree;

use serde::de::DeserializeSeed as _;

pub(super) use event::event;
pub(super) use list::list;
pub(super) use tree::Tree;

use super::error::DecodeError;
use object_tree::Node;

pub(super) fn object(text: &[u8]) -> Result<Node, DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let object = Tree::OBJECT.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(object)
}
