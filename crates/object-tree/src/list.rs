//! Handles Kubernetes lists: `kind: List`, `kind: ServiceList` and similar, whose `items` are the
//! objects.

use super::node::{Node, Text, Value};

/// The kind of the items: those of a `ServiceList` are Services and do not repeat it.
pub(super) struct ListKind {
    /// The kind of the items. None for a plain `List`, or if the kind comes after the items.
    pub(super) kind: Option<Text>,
    api_version: Option<Text>,
}

impl ListKind {
    /// Reads the list's kind from the entries so far.
    pub(super) fn of(entries: &[(Text, Node)]) -> Self {
        let text = |name: &str| {
            let (_, node) = entries.iter().find(|(key, _)| &**key == name)?;
            node.text()
        };
        let own = |text: &str| Text::from(text.to_owned());
        let kind = text("kind")
            .and_then(|kind| kind.strip_suffix("List"))
            .filter(|kind| !kind.is_empty());
        Self {
            kind: kind.map(own),
            api_version: text("apiVersion").map(own),
        }
    }
}

/// Gives an item without a kind the kind that its list implies.
pub(super) fn inherit(node: Node, list: &ListKind) -> Node {
    let missing = |key: &str| node.get(key).is_none();
    let kind = list.kind.as_ref().filter(|_| missing("kind"));
    let version = list.api_version.as_ref().filter(|_| missing("apiVersion"));
    let (Some(kind), Some(_)) = (kind, node.map()) else {
        return node;
    };
    let line = node.line;
    let mut entries = node.into_map().unwrap_or_default();
    for (key, text) in [("kind", Some(kind)), ("apiVersion", version)] {
        if let Some(text) = text {
            entries.retain(|(name, _)| &**name != key);
            entries.push((
                key.into(),
                Node::new(
                    line,
                    Value::Scalar {
                        text: text.clone(),
                        plain: true,
                    },
                ),
            ));
        }
    }
    Node::new(line, Value::Map(entries))
}

/// Passes an object to `sink`, or the items of a list one by one. An empty document has none.
///
/// The parser's nesting limit also limits lists in lists.
pub(super) fn deliver(node: Node, sink: &mut dyn FnMut(Node)) {
    if node.is_null() {
        return;
    }
    if !is_list(&node) {
        return sink(node);
    }
    let mut entries = node.into_map().unwrap_or_default();
    let list = ListKind::of(&entries);
    let items = entries
        .iter()
        .position(|(key, _)| &**key == "items")
        .map(|at| entries.swap_remove(at));
    for item in items
        .and_then(|(_, items)| items.into_list())
        .unwrap_or_default()
    {
        deliver(inherit(item, &list), sink);
    }
}

/// Whether it is a list: its kind ends in "List", and it has no name (a custom kind may end in
/// "List").
fn is_list(node: &Node) -> bool {
    let named = node
        .get("metadata")
        .and_then(|metadata| metadata.get("name"))
        .is_some();
    !named
        && node
            .get("kind")
            .and_then(Node::text)
            .is_some_and(|kind| kind.ends_with("List"))
}
