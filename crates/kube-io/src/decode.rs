//! What the API server sends, into the tree that conversion reads: a page of objects, one event of a watch, or one
//! object, in either [`Encoding`].
//!
//! The tree is the one of [`yaml`](object_tree), so everything behind it is the same for both sources. Objects are
//! built one at a time, straight from the bytes.

mod error;
mod framer;
mod json;
mod page;
mod protobuf;
mod scalar;
#[cfg(test)]
mod tests;

pub use error::DecodeError;
pub use framer::Framer;
pub use page::Page;

use scalar::quoted;

use object_tree::{Node, Value};

/// The annotation of the bookmark that ends a list that was asked for as a stream.
const LISTED: &str = "k8s.io/initial-events-end";

/// In which form the server writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Every server has every kind so.
    Json,
    /// About half as long; only the kinds of Kubernetes itself can be had so.
    Protobuf,
}

/// One event of a watch.
#[derive(Debug)]
pub struct WatchEvent {
    /// What happened.
    pub event_type: WatchEventType,
    /// The object, or the `Status` of an error.
    pub object: Node,
}

/// What happened to the object of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventType {
    /// It exists with this content: added or modified.
    Applied,
    /// It does not exist any more, or is not selected any more.
    Deleted,
    /// Nothing: only the version has moved on. `listed` when everything that existed was named.
    Bookmark {
        /// Whether everything that existed was named.
        listed: bool,
    },
    /// The server ends the watch; the object is a `Status`.
    Error,
}

/// What every object of one collection is, whether or not it says so: elements of a list do not, and those that were
/// asked for as metadata only say something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeMeta {
    /// The kind.
    pub kind: &'static str,
    /// The API version.
    pub api_version: &'static str,
}

impl Encoding {
    /// Reads the header `Content-Type`; JSON for every value that is not protobuf.
    pub fn of(content_type: &str) -> Self {
        if content_type.starts_with("application/vnd.kubernetes.protobuf") {
            Self::Protobuf
        } else {
            Self::Json
        }
    }

    /// Reads a page and hands its objects to `sink`, one at a time.
    ///
    /// After an error some objects may have been handed over.
    pub fn list(
        self,
        page: &[u8],
        type_meta: TypeMeta,
        sink: &mut dyn FnMut(Node),
    ) -> Result<Page, DecodeError> {
        let mut sink = |object| sink(type_meta.set_on(object));
        match self {
            Self::Json => json::list(page, &mut sink),
            Self::Protobuf => protobuf::list(page, &mut sink),
        }
    }

    /// Reads an event.
    pub fn event(self, event: &[u8], type_meta: TypeMeta) -> Result<WatchEvent, DecodeError> {
        let (kind, object) = match self {
            Self::Json => json::event(event),
            Self::Protobuf => protobuf::event(event),
        }?;
        let event_type = match &*kind {
            "ADDED" | "MODIFIED" => WatchEventType::Applied,
            "DELETED" => WatchEventType::Deleted,
            "BOOKMARK" => WatchEventType::Bookmark {
                listed: ends_list(&object),
            },
            "ERROR" => WatchEventType::Error,
            _ => return Err(DecodeError::Event(kind.into())),
        };
        let object = match event_type {
            WatchEventType::Applied | WatchEventType::Deleted => type_meta.set_on(object),
            WatchEventType::Bookmark { .. } | WatchEventType::Error => object,
        };
        Ok(WatchEvent { event_type, object })
    }

    /// Reads one object.
    pub fn object(self, object: &[u8]) -> Result<Node, DecodeError> {
        match self {
            Self::Json => json::object(object),
            Self::Protobuf => protobuf::object(object),
        }
    }
}

impl WatchEvent {
    /// The version from which to follow on.
    pub fn version(&self) -> Option<&str> {
        self.object.get("metadata")?.get("resourceVersion")?.text()
    }
}

fn ends_list(bookmark: &Node) -> bool {
    let metadata = bookmark.get("metadata");
    let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
    annotations
        .and_then(|annotations| annotations.get(LISTED)?.text())
        .is_some_and(|text| text == "true")
}

impl TypeMeta {
    /// The object with this kind and version.
    fn set_on(self, object: Node) -> Node {
        let Some(mut entries) = object.into_map() else {
            return Node::new(0, Value::List(Vec::new()));
        };
        for (name, text) in [("kind", self.kind), ("apiVersion", self.api_version)] {
            let value = quoted(text);
            match entries.iter_mut().find(|(key, _)| **key == *name) {
                Some((_, old)) => *old = value,
                None => entries.push((name.into(), value)),
            }
        }
        Node::new(0, Value::Map(entries))
    }
}
