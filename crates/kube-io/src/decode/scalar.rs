//! Makes the scalars of the tree, quoted or plain.

use object_tree::{Node, Text, Value};

/// A text.
pub(super) fn quoted(text: impl Into<Text>) -> Node {
    let (text, plain) = (text.into(), false);
    Node::new(0, Value::Scalar { text, plain })
}

/// A boolean.
pub(super) fn flag(value: bool) -> Node {
    plain(if value { "true" } else { "false" })
}

/// A number, a boolean or nothing.
pub(super) fn plain(text: impl Into<Text>) -> Node {
    let (text, plain) = (text.into(), true);
    Node::new(0, Value::Scalar { text, plain })
}
