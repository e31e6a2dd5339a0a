//! Defines the types into which objects can be decoded: a tree without large unused fields, or
//! plain JSON.

use std::borrow::Cow;
use std::marker::PhantomData;

use object_tree::{Node, Value as TreeValue};
use serde_json::Value;

use super::encoding::Encoding;
use super::error::{DecodeError, decode_error};
use super::json::{self, Tree};
use super::page::Page;
use super::protobuf;
use super::scalar::quoted;
use super::type_meta::TypeMeta;

pub trait DecodedObject: Sized {
    /// Decodes a page and passes its objects to `sink`, one at a time.
    fn list(
        encoding: Encoding,
        page: &[u8],
        sink: &mut dyn FnMut(Self),
    ) -> Result<Page, DecodeError>;

    /// Decodes an event of a watch: its type and its object.
    fn event(encoding: Encoding, event: &[u8]) -> Result<(object_tree::Text, Self), DecodeError>;

    #[must_use]
    fn with_type(self, type_meta: TypeMeta) -> Self;

    /// The text, number or boolean at a path of keys.
    fn scalar(&self, path: &[&str]) -> Option<Cow<'_, str>>;
}

impl DecodedObject for Node {
    fn list(
        encoding: Encoding,
        page: &[u8],
        sink: &mut dyn FnMut(Self),
    ) -> Result<Page, DecodeError> {
        match encoding {
            Encoding::Json => json::list(page, Tree::OBJECT, sink),
            Encoding::Protobuf => protobuf::list(page, sink),
        }
    }

    fn event(encoding: Encoding, event: &[u8]) -> Result<(object_tree::Text, Self), DecodeError> {
        match encoding {
            Encoding::Json => json::event(event, Tree::OBJECT),
            Encoding::Protobuf => protobuf::event(event),
        }
    }

    fn with_type(self, type_meta: TypeMeta) -> Self {
        let Some(mut entries) = self.into_map() else {
            return Self::new(0, TreeValue::List(Vec::new()));
        };
        for (name, text) in type_meta.entries() {
            let value = quoted(text);
            match entries.iter_mut().find(|(key, _)| **key == *name) {
                Some((_, old)) => *old = value,
                None => entries.push((name.into(), value)),
            }
        }
        Self::new(0, TreeValue::Map(entries))
    }

    fn scalar(&self, path: &[&str]) -> Option<Cow<'_, str>> {
        let mut node = self;
        for key in path {
            node = node.get(key)?;
        }
        node.text().map(Cow::Borrowed)
    }
}

/// Supports no protobuf: it is for custom resources, and for callers that read few objects.
impl DecodedObject for Value {
    fn list(
        encoding: Encoding,
        page: &[u8],
        sink: &mut dyn FnMut(Self),
    ) -> Result<Page, DecodeError> {
        match encoding {
            Encoding::Json => json::list(page, PhantomData::<Self>, sink),
            Encoding::Protobuf => Err(unrequested()),
        }
    }

    fn event(encoding: Encoding, event: &[u8]) -> Result<(object_tree::Text, Self), DecodeError> {
        match encoding {
            Encoding::Json => json::event(event, PhantomData::<Self>),
            Encoding::Protobuf => Err(unrequested()),
        }
    }

    fn with_type(mut self, type_meta: TypeMeta) -> Self {
        if let Some(fields) = self.as_object_mut() {
            for (name, text) in type_meta.entries() {
                fields.insert(name.to_owned(), text.into());
            }
        }
        self
    }

    fn scalar(&self, path: &[&str]) -> Option<Cow<'_, str>> {
        let mut value = self;
        for key in path {
            value = value.get(key)?;
        }
        match value {
            Self::String(text) => Some(Cow::Borrowed(text)),
            Self::Number(number) => Some(Cow::Owned(number.to_string())),
            Self::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Self::Null | Self::Array(_) | Self::Object(_) => None,
        }
    }
}

fn unrequested() -> DecodeError {
    decode_error("JSON was requested")
}
