//! Decodes a page of objects: `{"metadata": {...}, "items": [...]}`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::decode::error::DecodeError;
use crate::decode::page::Page;

/// Decodes a page with `seed` and passes its objects to `sink`, one at a time. `sink` may receive
/// some objects before an error.
pub(in crate::decode) fn list<O, S>(
    text: &[u8],
    seed: S,
    sink: &mut dyn FnMut(O),
) -> Result<Page, DecodeError>
where
    S: for<'de> DeserializeSeed<'de, Value = O> + Copy,
{
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let page = deserializer.deserialize_map(ListVisitor(Items { seed, sink }))?;
    deserializer.end()?;
    Ok(page)
}

struct ListVisitor<'s, O, S>(Items<'s, O, S>);

impl<'de, O, S: DeserializeSeed<'de, Value = O> + Copy> Visitor<'de> for ListVisitor<'_, O, S> {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Page, A::Error> {
        let mut page = Page::default();
        let mut has_items = false;
        while let Some(key) = map.next_key::<Box<str>>()? {
            match &*key {
                "metadata" => page = map.next_value::<Option<Page>>()?.unwrap_or_default(),
                "items" => {
                    has_items = true;
                    let Items { seed, sink } = &mut self.0;
                    map.next_value_seed(Items {
                        seed: *seed,
                        sink: &mut **sink,
                    })?;
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
            "an answer without `items` is not a list",
        ))
    }
}

struct Items<'s, O, S> {
    seed: S,
    sink: &'s mut dyn FnMut(O),
}

impl<'de, O, S: DeserializeSeed<'de, Value = O> + Copy> DeserializeSeed<'de> for Items<'_, O, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, O, S: DeserializeSeed<'de, Value = O> + Copy> Visitor<'de> for Items<'_, O, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the objects of a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(object) = elements.next_element_seed(self.seed)? {
            (self.sink)(object);
        }
        Ok(())
    }
}
