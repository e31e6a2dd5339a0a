//! A page of objects: `{"metadata": {...}, "items": [...]}`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::tree::Tree;
use crate::decode::error::DecodeError;
use crate::decode::page::Page;
use object_tree::Node;

/// Reads a page and hands its objects to `sink`, one at a time.
///
/// After an error some objects may have been handed over.
pub(in crate::decode) fn list(
    text: &[u8],
    sink: &mut dyn FnMut(Node),
) -> Result<Page, DecodeError> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let page = deserializer.deserialize_map(Whole(sink))?;
    deserializer.end()?;
    Ok(page)
}

struct Whole<'s>(&'s mut dyn FnMut(Node));

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page, A::Error> {
        let mut page = Page::default();
        let mut has_items = false;
        while let Some(key) = map.next_key::<Box<str>>()? {
            match &*key {
                "metadata" => page = map.next_value::<Option<Page>>()?.unwrap_or_default(),
                "items" => {
                    has_items = true;
                    map.next_value_seed(Items(&mut *self.0))?;
                }
                _ => {
                    let _skipped: IgnoredAny = map.next_value()?;
                }
            }
        }
        if has_items {
            return Ok(page);
        }
        Err(serde::de::Error::custom(
            "an answer without `items` is no list",
        ))
    }
}

struct Items<'s>(&'s mut dyn FnMut(Node));

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the objects of a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(object) = elements.next_element_seed(Tree::OBJECT)? {
            (self.0)(object);
        }
        Ok(())
    }
}
