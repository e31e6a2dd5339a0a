//! The words in which a custom resource is described.

use super::rule::Rule;

/// A kind of object.
#[derive(Debug)]
pub struct Resource {
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) short: &'static str,
    pub(crate) namespaced: bool,
    /// What people call one: "policy", "drain".
    pub(crate) noun: &'static str,
    pub(crate) about: &'static str,
    /// What is wanted; nothing for what is only reported.
    pub(crate) spec: Object,
    /// What is reported; nothing for what is only wanted.
    pub(crate) status: Object,
    /// Who writes the status: "the controller".
    pub(crate) status_by: &'static str,
    pub(crate) columns: &'static [PrinterColumn],
}

/// A column of `kubectl get`.
#[derive(Debug)]
pub(crate) struct PrinterColumn {
    pub(crate) name: &'static str,
    /// `string`, `integer` or `date`.
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    /// Whether only `-o wide` shows it.
    pub(crate) wide: bool,
}

/// A mapping with known keys.
#[derive(Debug)]
pub struct Object {
    /// Its properties, in parts so that kinds can share some.
    pub(crate) parts: &'static [&'static [Property]],
    /// What the properties must be to each other.
    pub(crate) rules: &'static [&'static [Rule]],
    /// Whether writers replace it as a whole.
    pub(crate) atomic: bool,
}

/// One key of an object.
#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

/// Whether a property must be written, and what holds if it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    /// Absence has a meaning of its own, which the property's text tells.
    Optional,
    Text(&'static str),
    Number(i64),
    Flag(bool),
    EmptyList,
    EmptyMap,
}

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Shape {
    /// One of these words.
    Word(&'static [Word]),
    /// A text.
    Text(Text),
    /// A whole number in a range.
    Number {
        least: i64,
        most: i64,
    },
    /// `true` or `false`.
    Flag,
    /// An instant.
    Time,
    List {
        of: &'static Shape,
        least: usize,
        most: usize,
        /// Whether the elements stand in no order and none stands twice.
        set: bool,
    },
    /// A mapping with any keys.
    Map {
        of: &'static Shape,
        most: usize,
        /// What the keys are, in words.
        keys: &'static str,
    },
    Object(&'static Object),
}

/// A word that may be written, and its meaning; no meaning where the property's text has told it.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// What a text may look like.
#[derive(Debug)]
pub(crate) struct Text {
    /// What it is, in words.
    pub(crate) what: &'static str,
    /// An expression that the whole text must match; empty = anything.
    pub(crate) pattern: &'static str,
    /// The same, for the reader.
    pub(crate) fits: fn(&str) -> bool,
    /// What to write.
    pub(crate) remedy: &'static str,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

impl Resource {
    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// What people call one: "policy", "drain".
    pub fn noun(&self) -> &'static str {
        self.noun
    }

    /// The description of the spec.
    pub fn spec(&self) -> &Object {
        &self.spec
    }
}

impl Object {
    /// Without any properties.
    pub(crate) const NOTHING: Self = Self {
        parts: &[],
        rules: &[],
        atomic: false,
    };

    /// Whether it has no properties.
    pub(crate) fn is_nothing(&self) -> bool {
        self.parts.is_empty()
    }

    /// Every property, in the order in which they are described.
    pub(crate) fn properties(&self) -> impl Iterator<Item = &'static Property> + use<> {
        self.parts.iter().copied().flatten()
    }

    /// Every rule.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static Rule> + use<> {
        self.rules.iter().copied().flatten()
    }
}

/// Anything, in words for people.
pub(crate) const PROSE: Text = Text {
    what: "text",
    pattern: "",
    fits: |_| true,
    remedy: "write less",
    least: 0,
    most: 1024,
};

/// A label's key or an alias of one.
pub(crate) const LABEL_KEY: Text = Text {
    what: "label key",
    pattern: r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$",
    fits: |text| match text.split_once('/') {
        Some((prefix, name)) => {
            prefix
                .split('.')
                .all(|part| ends_well(part) && part.bytes().all(is_dns))
                && is_name(name)
        }
        None => is_name(text),
    },
    remedy: "use node, zone, region or a key such as example.com/rack",
    least: 1,
    most: 253,
};

/// A label's key as it is in full.
pub(crate) const FULL_LABEL_KEY: Text = Text {
    remedy: "write the key in full, such as topology.kubernetes.io/zone",
    ..LABEL_KEY
};

/// The name of an object.
pub(crate) const OBJECT_NAME: Text = Text {
    what: "name",
    pattern: r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    fits: |text| {
        text.split('.')
            .all(|part| ends_well(part) && part.bytes().all(is_dns))
    },
    remedy: "write the name of the object",
    least: 1,
    most: 253,
};

/// The key of a level.
pub(crate) const LEVEL_KEY: Text = Text {
    remedy: "use node, zone, region or a key such as example.com/rack, or `any: true` in place of the key",
    ..LABEL_KEY
};

/// A label's value.
pub(crate) const LABEL_VALUE: Text = Text {
    what: "label value",
    pattern: "^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$",
    fits: |text| text.is_empty() || is_name(text),
    remedy: "use letters, digits, `-`, `_` and `.`",
    least: 0,
    most: 63,
};

/// An address.
pub(crate) const IP_ADDRESS: Text = Text {
    what: "IP address",
    pattern: "^[0-9a-f:.]+$",
    fits: |text| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b':' | b'.'))
    },
    remedy: "write an IPv4 or IPv6 address, without a prefix length",
    least: 2,
    most: 45,
};

/// The name of a Node or the value of a label.
pub(crate) const DOMAIN: Text = Text {
    what: "label value or Node name",
    pattern: "^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$",
    fits: |text| ends_well(text) && text.bytes().all(is_label),
    remedy: "write a value of the label as nodes have it",
    least: 1,
    most: 253,
};

/// The name of a port or of a level.
pub(crate) const SHORT_NAME: Text = Text {
    what: "lower-case name",
    pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    fits: |text| ends_well(text) && text.bytes().all(is_dns),
    remedy: "use lower-case letters, digits and `-`",
    least: 1,
    most: 63,
};

fn is_dns(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

fn is_name(text: &str) -> bool {
    text.len() <= 63 && ends_well(text) && text.bytes().all(is_label)
}

fn ends_well(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter()
        .all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}
