//! One line of a watch: `{"type": "ADDED", "object": {...}}`.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::Identity;
use super::tree::Tree;
use crate::yaml::Node;

/// The annotation of the bookmark that ends a list that was asked for as a stream.
const LISTED: &str = "k8s.io/initial-events-end";

/// What happened to the object of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happening {
    /// It exists with this content: added or modified.
    Exists,
    /// It does not exist any more, or is not selected any more.
    Gone,
    /// Nothing: only the version has moved on. `listed` when everything that existed was named.
    Bookmark {
        /// Whether everything that existed was named.
        listed: bool,
    },
    /// The server ends the watch; the object is a `Status`.
    Error,
}

/// One line of a watch.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) happening: Happening,
    pub(crate) object: Node,
}

impl Line {
    /// The version from which to follow on.
    pub(crate) fn version(&self) -> Option<&str> {
        self.object.get("metadata")?.get("resourceVersion")?.text()
    }
}

/// Reads a line.
pub(crate) fn line(text: &[u8], identity: Identity) -> Result<Line, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let (kind, object) = deserializer.deserialize_map(Whole)?;
    deserializer.end()?;
    let happening = match &*kind {
        "ADDED" | "MODIFIED" => Happening::Exists,
        "DELETED" => Happening::Gone,
        "BOOKMARK" => Happening::Bookmark {
            listed: ends_list(&object),
        },
        "ERROR" => Happening::Error,
        other => {
            let message = format!("`{other}` is no event of a watch");
            return Err(serde_json::Error::custom(message));
        }
    };
    let object = match happening {
        Happening::Exists | Happening::Gone => identity.given_to(object),
        Happening::Bookmark { .. } | Happening::Error => object,
    };
    Ok(Line { happening, object })
}

fn ends_list(bookmark: &Node) -> bool {
    let metadata = bookmark.get("metadata");
    let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
    annotations
        .and_then(|annotations| annotations.get(LISTED)?.text())
        .is_some_and(|text| text == "true")
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = (Box<str>, Node);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut object) = (None, None);
        while let Some(key) = map.next_key::<Box<str>>()? {
            match &*key {
                "type" => kind = Some(map.next_value()?),
                "object" => object = Some(map.next_value_seed(Tree::OBJECT)?),
                _ => {
                    let _skipped: IgnoredAny = map.next_value()?;
                }
            }
        }
        let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        let object = object.ok_or_else(|| A::Error::missing_field("object"))?;
        Ok((kind, object))
    }
}
