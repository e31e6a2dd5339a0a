//! The types that describe a custom resource.

use super::rule::Rule;

#[derive(Debug)]
pub struct Resource {
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) short: &'static str,
    pub(crate) namespaced: bool,
    /// The word for people: "policy", "drain".
    pub(crate) noun: &'static str,
    pub(crate) about: &'static str,
    /// The desired state; empty for a kind that is only a report.
    pub(crate) spec: Object,
    /// The observed state; empty if there is none.
    pub(crate) status: Object,
    /// The writer of the status: "the controller".
    pub(crate) status_by: &'static str,
    pub(crate) columns: &'static [PrinterColumn],
}

#[derive(Debug)]
pub(crate) struct PrinterColumn {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    pub(crate) wide: bool,
}

#[derive(Debug)]
pub struct Object {
    /// Its properties, in parts that several kinds can share.
    pub(crate) parts: &'static [&'static [Property]],
    /// Rules between the properties.
    pub(crate) rules: &'static [&'static [Rule]],
    /// Whether a write replaces the object as a whole.
    pub(crate) atomic: bool,
}

#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

/// Whether a property is required, and its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    /// Absence has its own meaning. The property's text explains it.
    Optional,
    Text(&'static str),
    Number(i64),
    Flag(bool),
    EmptyList,
    EmptyMap,
}

/// The type of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    Word(&'static [Word]),
    Text(Text),
    Number {
        least: i64,
        most: i64,
    },
    Flag,
    Time,
    List {
        of: &'static Shape,
        least: usize,
        most: usize,
        /// Whether the order has no meaning and no element repeats.
        set: bool,
    },
    Map {
        of: &'static Shape,
        most: usize,
        /// What the keys are, for people.
        keys: &'static str,
    },
    Object(&'static Object),
}

/// A word and its meaning; no meaning if the property's text explains it.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// The rules for a text.
#[derive(Debug)]
pub(crate) struct Text {
    /// What it is, for people.
    pub(crate) what: &'static str,
    /// A regular expression for the whole text; empty = anything.
    pub(crate) pattern: &'static str,
    /// The same rule, for the reader.
    pub(crate) fits: fn(&str) -> bool,
    /// The remedy of an error.
    pub(crate) remedy: &'static str,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

impl Resource {
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The word for people: "policy", "drain".
    pub fn noun(&self) -> &'static str {
        self.noun
    }

    pub fn spec(&self) -> &Object {
        &self.spec
    }
}

impl Object {
    pub(crate) const NOTHING: Self = Self {
        parts: &[],
        rules: &[],
        atomic: false,
    };

    pub(crate) fn is_nothing(&self) -> bool {
        self.parts.is_empty()
    }

    /// The properties, in the order of the documentation.
    pub(crate) fn properties(&self) -> impl Iterator<Item = &'static Property> + use<> {
        self.parts.iter().copied().flatten()
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static Rule> + use<> {
        self.rules.iter().copied().flatten()
    }
}

/// Free text.
pub(crate) const PROSE: Text = Text {
    what: "text",
    pattern: "",
    fits: |_| true,
    remedy: "write less",
    least: 0,
    most: 1024,
};

/// A label key, or its short name.
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

/// A label key without short names.
pub(crate) const FULL_LABEL_KEY: Text = Text {
    remedy: "write the key in full, such as topology.kubernetes.io/zone",
    ..LABEL_KEY
};

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

pub(crate) const LEVEL_KEY: Text = Text {
    remedy: "use node, zone, region or a key such as example.com/rack, or `any: true` in place of the key",
    ..LABEL_KEY
};

pub(crate) const LABEL_VALUE: Text = Text {
    what: "label value",
    pattern: "^([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$",
    fits: |text| text.is_empty() || is_name(text),
    remedy: "use letters, digits, `-`, `_` and `.`",
    least: 0,
    most: 63,
};

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

/// Addresses with the same first bits; the reader checks how many bits the family has.
pub(crate) const IP_RANGE: Text = Text {
    what: "range of IP addresses",
    pattern: "^[0-9a-f:.]+/[0-9]{1,3}$",
    fits: |text| {
        text.split_once('/').is_some_and(|(address, bits)| {
            (IP_ADDRESS.fits)(address)
                && (1..=3).contains(&bits.len())
                && bits.bytes().all(|byte| byte.is_ascii_digit())
        })
    },
    remedy: "write it as 10.244.1.0/24 or fd00:10:244:1::/64",
    least: 4,
    most: 49,
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
