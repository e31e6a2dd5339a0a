//! Decodes JSON directly into [`Node`]s.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::entries::Entries;
use crate::decode::scalar::{flag, plain, quoted};
use object_tree::{MAX_DEPTH, Node, Text, Value};

/// Reads one value, `depth` levels inside its object.
#[derive(Clone, Copy)]
pub(in crate::decode) struct Tree {
    depth: u32,
    place: Section,
}

/// The part of an object, as far as fields of it are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Object,
    Metadata,
    Status,
    Elsewhere,
}

impl Tree {
    pub(in crate::decode) const OBJECT: Self = Self {
        depth: 0,
        place: Section::Object,
    };

    /// The position of the value of `key`.
    fn under(self, key: &str) -> Self {
        let place = match (self.place, key) {
            (Section::Object, "metadata") => Section::Metadata,
            (Section::Object, "status") => Section::Status,
            _ => Section::Elsewhere,
        };
        Self {
            depth: self.depth + 1,
            place,
        }
    }

    /// Whether the value of `key` is large and unused.
    fn leaves_out(self, key: &str) -> bool {
        matches!(
            (self.place, key),
            (Section::Metadata, "managedFields")
                | (
                    Section::Status,
                    "images" | "volumesAttached" | "volumesInUse"
                )
        )
    }
}

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom(format_args!(
                "nested more than {MAX_DEPTH} levels deep"
            )));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(plain("null"))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(plain(value.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(quoted(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(quoted(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = elements.next_element_seed(self.under(""))? {
            items.push(item);
        }
        Ok(Node::new(0, Value::List(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Entries::default();
        while let Some(key) = map.next_key::<String>()? {
            if self.leaves_out(&key) {
                let _skipped: IgnoredAny = map.next_value()?;
                continue;
            }
            let value = map.next_value_seed(self.under(&key))?;
            // Servers write each key once. If a key repeats, the last value wins, as in Go.
            entries.put(Text::from(key), value);
        }
        Ok(Node::new(0, Value::Map(entries.into_list())))
    }
}
