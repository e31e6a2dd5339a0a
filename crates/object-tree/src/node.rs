//! A parsed object: a small tree in which every value has its line.

use std::borrow::Cow;
use std::rc::Rc;

/// A key or a scalar. A decoder that knows field names in advance need not copy them.
pub type Text = Cow<'static, str>;

/// One value of a document, and its line.
#[derive(Debug, Clone)]
pub struct Node {
    /// The line, counted from 1; 0 if the object was not read from text.
    pub line: u32,
    value: Value,
}

/// The content of a [`Node`].
#[derive(Debug, Clone)]
pub enum Value {
    /// A scalar as written, escapes resolved.
    Scalar {
        /// The text.
        text: Text,
        /// Whether it was neither quoted nor tagged, so that YAML may read it as a number, boolean
        /// or null.
        plain: bool,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the text, keys unique.
    Map(Vec<(Text, Node)>),
    /// An anchored value, shared by its aliases (never copied, so aliases cannot multiply memory).
    Shared(Rc<Node>),
}

impl Node {
    /// A value on this line.
    pub fn new(line: u32, value: Value) -> Self {
        Self { line, value }
    }

    /// The content, with aliases followed (never [`Value::Shared`]).
    pub fn value(&self) -> &Value {
        let mut node = self;
        while let Value::Shared(shared) = &node.value {
            node = shared;
        }
        &node.value
    }

    /// The entries of a mapping (copied if the mapping is shared).
    pub fn into_map(self) -> Option<Vec<(Text, Node)>> {
        match self.value {
            Value::Map(entries) => Some(entries),
            Value::Shared(shared) => Rc::unwrap_or_clone(shared).into_map(),
            Value::Scalar { .. } | Value::List(_) => None,
        }
    }

    /// The elements of a list (copied if the list is shared).
    pub fn into_list(self) -> Option<Vec<Node>> {
        match self.value {
            Value::List(items) => Some(items),
            Value::Shared(shared) => Rc::unwrap_or_clone(shared).into_list(),
            Value::Scalar { .. } | Value::Map(_) => None,
        }
    }

    /// Whether the value is absent: empty, `~` or `null`, unquoted.
    pub fn is_null(&self) -> bool {
        matches!(self.value(), Value::Scalar { text, plain: true }
            if matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The scalar as text: `zone: no` is the text `no`, and `1.10` keeps its last zero.
    pub fn text(&self) -> Option<&str> {
        match self.value() {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether the value is a scalar that was neither quoted nor tagged.
    pub fn is_plain(&self) -> bool {
        matches!(self.value(), Value::Scalar { plain: true, .. })
    }

    /// The scalar as a boolean, as kubectl reads it: `true` or `false`, quoted or not, and unquoted
    /// the other words of YAML 1.1, such as `no`.
    pub fn boolean(&self) -> Option<bool> {
        match self.text()? {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            text if self.is_plain() => yaml_boolean(text),
            _ => None,
        }
    }

    /// The elements of a list.
    pub fn list(&self) -> Option<&[Node]> {
        match self.value() {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a mapping.
    pub fn map(&self) -> Option<&[(Text, Node)]> {
        match self.value() {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of `key`, when this is a mapping that has it and it is not null.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let (_, node) = self.map()?.iter().find(|(name, _)| &**name == key)?;
        (!node.is_null()).then_some(node)
    }

    /// Describes the value for warnings: "a list", "`yes`".
    pub fn describe(&self) -> String {
        match self.value() {
            Value::Scalar { text, .. } if text.chars().count() > 60 => {
                format!("`{}...`", text.chars().take(60).collect::<String>())
            }
            Value::Scalar { text, .. } => format!("`{text}`"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) | Value::Shared(_) => "a mapping".to_owned(),
        }
    }
}

/// An unquoted text as a boolean of YAML 1.1, which is the YAML of Kubernetes.
pub fn yaml_boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            Some(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Some(false)
        }
        _ => None,
    }
}
