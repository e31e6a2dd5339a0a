//! Makes the scalars of the tree, quoted or plain.

use object_tree::{Node, Text, Value};

pub(super) fn quoted(text: impl Into<Text>) -> Node {
    let (text, plain) = (text.into(), false);
    Node::new(0, Value::Scalar { text, plain })
}

pub(super) fn flag(value: bool) -> Node {
    plain(if value { "true" } else { "false" })
}

/// A number, a boolean or null.
pub(super) fn plain(text: impl Into<Text>) -> Node {
    let (text, plain) = (text.into(), true);
    Node::new(0, Value::Scalar { text, plain })
}
