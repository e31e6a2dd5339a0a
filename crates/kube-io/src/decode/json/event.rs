//! Decodes one line of a watch: `{"type": "ADDED", "object": {...}}`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::decode::error::DecodeError;
use object_tree::Text;

/// Returns the type, and the object that `seed` decodes.
pub(in crate::decode) fn event<O, S>(text: &[u8], seed: S) -> Result<(Text, O), DecodeError>
where
    S: for<'de> DeserializeSeed<'de, Value = O>,
{
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let event = deserializer.deserialize_map(EventVisitor(seed))?;
    deserializer.end()?;
    Ok(event)
}

struct EventVisitor<S>(S);

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for EventVisitor<S> {
    type Value = (Text, S::Value);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut object) = (None, None);
        let mut seed = Some(self.0);
        while let Some(key) = map.next_key::<Box<str>>()? {
            match &*key {
                "type" => kind = Some(map.next_value()?),
                "object" => {
                    let seed = seed.take();
                    let seed = seed.ok_or_else(|| A::Error::duplicate_field("object"))?;
                    object = Some(map.next_value_seed(seed)?);
                }
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
