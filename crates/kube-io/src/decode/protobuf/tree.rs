//! Decodes a message into a [`Node`].

use jiff::Timestamp;
use smallvec::SmallVec;

use super::kinds::{Cardinality, Message, Type};
use super::value::{bytes_in, text, text_in};
use super::wire::{Fields, Value};
use crate::decode::error::{DecodeError, decode_error};
use crate::decode::scalar::{flag, plain, quoted};
use object_tree::{self as yaml, Node};

/// Reads the fields of a message that are in its table.
pub(super) fn message(bytes: &[u8], table: Message) -> Result<Node, DecodeError> {
    let fields: SmallVec<[_; 16]> = Fields::of(bytes).collect::<Result<_, _>>()?;
    let mut entries = Vec::with_capacity(table.len().min(fields.len()));
    for row in table {
        let values = fields.iter().filter(|(number, _)| *number == row.number);
        let values: SmallVec<[Value<'_>; 4]> = values.map(|(_, value)| *value).collect();
        let Some(last) = values.last() else { continue };
        let node = match row.cardinality {
            Cardinality::One(of) => one(*last, of)?,
            Cardinality::Many(of) => Some(many(&values, of)?),
            Cardinality::Map(of) => Some(map(&values, of)?),
        };
        entries.extend(node.map(|node| (row.name.into(), node)));
    }
    entries.shrink_to_fit();
    Ok(Node::new(0, yaml::Value::Map(entries)))
}

/// Reads a field that is not repeated. Servers write most fields even if they are empty. An empty
/// text or time is omitted, as in JSON. A number stays, even a 0 that JSON omits.
fn one(value: Value<'_>, of: Type) -> Result<Option<Node>, DecodeError> {
    let is_nothing = matches!((of, value), (Type::Text | Type::Time, Value::Bytes([])));
    if is_nothing {
        Ok(None)
    } else {
        read(value, of).map(Some)
    }
}

fn many(values: &[Value<'_>], of: Type) -> Result<Node, DecodeError> {
    let items = values.iter().map(|value| read(*value, of));
    let items = items.collect::<Result<_, _>>()?;
    Ok(Node::new(0, yaml::Value::List(items)))
}

/// Reads a map: a repeated message with the key in field 1 and the value in field 2. No key
/// repeats.
fn map(values: &[Value<'_>], of: Type) -> Result<Node, DecodeError> {
    let entries = values.iter().map(|value| {
        let Value::Bytes(entry) = value else {
            return Err(decode_error("an entry that is not a message"));
        };
        let value = Value::Bytes(bytes_in(entry, 2)?.unwrap_or_default());
        Ok((text_in(entry, 1)?, read(value, of)?))
    });
    let entries = entries.collect::<Result<_, _>>()?;
    Ok(Node::new(0, yaml::Value::Map(entries)))
}

fn read(value: Value<'_>, of: Type) -> Result<Node, DecodeError> {
    match (of, value) {
        (Type::Text, Value::Bytes(bytes)) => Ok(quoted(text(bytes))),
        (Type::Number, Value::Number(number)) => Ok(plain(number.cast_signed().to_string())),
        (Type::Flag, Value::Number(number)) => Ok(flag(number != 0)),
        (Type::Time, Value::Bytes(bytes)) => time(bytes),
        (Type::Quantity, Value::Bytes(bytes)) => Ok(quoted(text_in(bytes, 1)?)),
        (Type::Message(table), Value::Bytes(bytes)) => message(bytes, table),
        _ => Err(decode_error("a field of the wrong type")),
    }
}

/// Reads a time: field 1 is the seconds since 1970. JSON, too, has no fractions of a second.
fn time(bytes: &[u8]) -> Result<Node, DecodeError> {
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
