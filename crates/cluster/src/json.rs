//! What the API server sends, into the tree that conversion reads: [`list()`] for a page of objects, [`line()`] for one
//! event of a watch.
//!
//! The tree is the one of [`yaml`](crate::yaml), so everything behind it is the same for both sources. Objects are
//! built one at a time, straight from the bytes. What nothing reads and what is large is left out while reading:
//! `managedFields`, and the images of a Node.

mod line;
mod list;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use line::{Happening, Line, line};
pub(crate) use list::{Page, list};

use crate::yaml::{Node, Value};

/// What every object of one collection is, whether or not it says so: elements of a list do not, and those that were
/// asked for as metadata only say something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) kind: &'static str,
    pub(crate) api_version: &'static str,
}

impl Identity {
    /// The object with this kind and version.
    fn given_to(self, object: Node) -> Node {
        let Some(mut entries) = object.into_map() else {
            return Node::new(0, Value::List(Vec::new()));
        };
        for (name, text) in [("kind", self.kind), ("apiVersion", self.api_version)] {
            let value = text_node(text);
            match entries.iter_mut().find(|(key, _)| **key == *name) {
                Some((_, old)) => *old = value,
                None => entries.push((name.into(), value)),
            }
        }
        Node::new(0, Value::Map(entries))
    }
}

fn text_node(text: &str) -> Node {
    Node::new(
        0,
        Value::Scalar {
            text: text.into(),
            plain: false,
        },
    )
}
