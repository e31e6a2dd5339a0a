//! One line of a watch: `{"type": "ADDED", "object": {...}}`.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::tree::Tree;
use crate::decode::error::DecodeError;
use object_tree::{Node, Text};

/// Reads a line: its type, and its object.
pub(in crate::decode) fn event(text: &[u8]) -> Result<(Text, Node), DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let event = deserializer.deserialize_map(Whole)?;
    deserializer.end()?;
    Ok(event)
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = (Text, Node);

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
