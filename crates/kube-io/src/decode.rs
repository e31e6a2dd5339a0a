//! Decodes what the API server sends: a page of objects, a watch event or one object, in either
//! [`Encoding`].
//!
//! The tree is the one into which `object-tree` reads YAML, so the conversion is the same for files
//! and for an API server. Objects are built one at a time, directly from the bytes.

mod encoding;
mod error;
mod framer;
mod json;
mod object;
mod page;
mod protobuf;
mod scalar;
#[cfg(test)]
mod tests;
mod type_meta;

pub use encoding::Encoding;
pub use error::DecodeError;
pub use framer::{Framer, TooLong};
pub use object::DecodedObject;
pub use page::Page;
pub use type_meta::TypeMeta;

use std::borrow::Cow;

use object_tree::Node;

/// The annotation of the bookmark that completes the list at the start of a stream.
const LISTED: &str = "k8s.io/initial-events-end";

#[derive(Debug)]
pub struct WatchEvent<O = Node> {
    pub event_type: WatchEventType,
    /// The object, or the `Status` of an error.
    pub object: O,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventType {
    /// The object exists with this content: added or modified.
    Applied,
    /// The object was deleted, or is no longer selected.
    Deleted,
    /// Only the version changed.
    Bookmark {
        /// Whether this completes the list at the start of a stream.
        listed: bool,
    },
    /// The server ends the watch. The object is a `Status`.
    Error,
}

impl Encoding {
    /// Decodes a page and passes its objects to `sink`, one at a time. `sink` may receive some
    /// objects before an error.
    pub fn list<O: DecodedObject>(
        self,
        page: &[u8],
        type_meta: Option<TypeMeta>,
        sink: &mut dyn FnMut(O),
    ) -> Result<Page, DecodeError> {
        O::list(self, page, &mut |object| sink(typed(object, type_meta)))
    }

    pub fn event<O: DecodedObject>(
        self,
        event: &[u8],
        type_meta: Option<TypeMeta>,
    ) -> Result<WatchEvent<O>, DecodeError> {
        let (name, object) = O::event(self, event)?;
        let event_type = match &*name {
            "ADDED" | "MODIFIED" => WatchEventType::Applied,
            "DELETED" => WatchEventType::Deleted,
            "BOOKMARK" => WatchEventType::Bookmark {
                listed: ends_list(&object),
            },
            "ERROR" => WatchEventType::Error,
            _ => return Err(DecodeError::Event(name.into())),
        };
        let object = match event_type {
            WatchEventType::Applied | WatchEventType::Deleted => typed(object, type_meta),
            WatchEventType::Bookmark { .. } | WatchEventType::Error => object,
        };
        Ok(WatchEvent { event_type, object })
    }

    pub fn object(self, object: &[u8]) -> Result<Node, DecodeError> {
        match self {
            Self::Json => json::object(object),
            Self::Protobuf => protobuf::object(object),
        }
    }
}

impl<O: DecodedObject> WatchEvent<O> {
    /// The version to watch from next.
    pub fn version(&self) -> Option<Cow<'_, str>> {
        self.object.scalar(&["metadata", "resourceVersion"])
    }
}

fn typed<O: DecodedObject>(object: O, type_meta: Option<TypeMeta>) -> O {
    match type_meta {
        Some(type_meta) => object.with_type(type_meta),
        None => object,
    }
}

fn ends_list(bookmark: &impl DecodedObject) -> bool {
    let value = bookmark.scalar(&["metadata", "annotations", LISTED]);
    value.is_some_and(|value| value == "true")
}
