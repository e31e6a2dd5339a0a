//! A message into a [`Node`].

use jiff::Timestamp;
use smallvec::SmallVec;

use super::kinds::{Kind, Message, Shape};
use super::wire::{Fields, Value};
use super::{bytes_in, garbled, text_in};
use crate::answer::{Garbled, plain, quoted};
use crate::yaml::{self, Node};

/// Reads the fields of a message that are in its table.
pub(super) fn message(bytes: &[u8], table: Message) -> Result<Node, Garbled> {
    let fields: SmallVec<[_; 16]> = Fields::of(bytes).collect::<Result<_, _>>()?;
    let mut entries = Vec::new();
    for row in table {
        let values = fields.iter().filter(|(number, _)| *number == row.number);
        let values: SmallVec<[Value<'_>; 4]> = values.map(|(_, value)| *value).collect();
        let Some(last) = values.last() else { continue };
        let node = match row.shape {
            Shape::One(kind) => one(*last, kind)?,
            Shape::Many(kind) => Some(many(&values, kind)?),
            Shape::Map(kind) => Some(map(&values, kind)?),
        };
        entries.extend(node.map(|node| (row.name.into(), node)));
    }
    entries.shrink_to_fit();
    Ok(Node::new(0, yaml::Value::Map(entries)))
}

/// A text; what is not UTF-8 becomes what the server writes for it in JSON.
pub(super) fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

/// A field that is not repeated. An empty text, or time, is written where JSON has nothing.
fn one(value: Value<'_>, kind: Kind) -> Result<Option<Node>, Garbled> {
    let is_nothing = matches!((kind, value), (Kind::Text | Kind::Time, Value::Bytes([])));
    if is_nothing {
        Ok(None)
    } else {
        read(value, kind).map(Some)
    }
}

fn many(values: &[Value<'_>], kind: Kind) -> Result<Node, Garbled> {
    let items = values.iter().map(|value| read(*value, kind));
    let items = items.collect::<Result<_, _>>()?;
    Ok(Node::new(0, yaml::Value::List(items)))
}

/// A mapping is a repeated message with the key as its first field and the value as its second.
fn map(values: &[Value<'_>], kind: Kind) -> Result<Node, Garbled> {
    let entries = values.iter().map(|value| {
        let Value::Bytes(entry) = value else {
            return Err(garbled("an entry that is no message"));
        };
        let value = Value::Bytes(bytes_in(entry, 2)?.unwrap_or_default());
        Ok((text_in(entry, 1)?, read(value, kind)?))
    });
    let entries = entries.collect::<Result<_, _>>()?;
    Ok(Node::new(0, yaml::Value::Map(entries)))
}

fn read(value: Value<'_>, kind: Kind) -> Result<Node, Garbled> {
    match (kind, value) {
        (Kind::Text, Value::Bytes(bytes)) => Ok(quoted(text(bytes))),
        (Kind::Number, Value::Number(number)) => Ok(plain(&number.cast_signed())),
        (Kind::Flag, Value::Number(number)) => Ok(plain(&(number != 0))),
        (Kind::Time, Value::Bytes(bytes)) => time(bytes),
        (Kind::Quantity, Value::Bytes(bytes)) => Ok(quoted(text_in(bytes, 1)?)),
        (Kind::Message(table), Value::Bytes(bytes)) => message(bytes, table),
        _ => Err(garbled("a field of another type than the one it has")),
    }
}

/// Seconds since 1970, in the first field; JSON has no parts of a second either.
fn time(bytes: &[u8]) -> Result<Node, Garbled> {
    let mut seconds = 0;
    for field in Fields::of(bytes) {
        if let (1, Value::Number(number)) = field? {
            seconds = number.cast_signed();
        }
    }
    let time = Timestamp::from_second(seconds);
    let text = time.map_or_else(|_never| seconds.to_string(), |time| time.to_string());
    Ok(quoted(text))
}
