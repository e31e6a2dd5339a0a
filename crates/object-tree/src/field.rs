//! A place in an object: its value, and its path for warnings.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use safe_text::is_name;

use crate::node::Node;

/// The remedy for an invalid name.
const NAME: &str = "use at most 253 visible characters";

/// Receives the problems of an object.
pub trait Problems {
    /// Reports that `field` is not used as written, with the problem and the remedy.
    fn warn(&mut self, field: &Field<'_>, message: String, remedy: String);
}

/// A field of an object, present or absent. Reading never fails: an invalid value is reported and
/// counts as absent.
#[derive(Debug)]
pub struct Field<'a> {
    node: Option<&'a Node>,
    /// The field's line, or that of the nearest present field around it.
    line: u32,
    parent: Option<&'a Field<'a>>,
    step: Step<'a>,
}

/// The last part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The object itself.
    Root,
    /// A field of a mapping.
    Key(&'a str),
    /// An element of a list.
    Index(usize),
    /// An entry of a mapping with any keys, such as labels.
    Label(&'a str),
}

impl<'a> Field<'a> {
    /// The object itself.
    pub fn root(node: &'a Node) -> Self {
        Self {
            node: Some(node),
            line: node.line,
            parent: None,
            step: Step::Root,
        }
    }

    /// The field `key` of this one. Absent if this one is absent or not a mapping.
    pub fn get<'s>(&'s self, key: &'s str) -> Field<'s> {
        self.child(self.node.and_then(|node| node.get(key)), Step::Key(key))
    }

    fn child<'s>(&'s self, node: Option<&'s Node>, step: Step<'s>) -> Field<'s> {
        Field {
            node,
            line: node.map_or(self.line, |node| node.line),
            parent: Some(self),
            step,
        }
    }

    /// Whether it is the object itself.
    pub fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// The field around this one.
    pub fn parent(&self) -> Option<&'a Field<'a>> {
        self.parent
    }

    /// The last part of the path.
    pub fn step(&self) -> Step<'a> {
        self.step
    }

    /// Whether it is the field `inner` of the field `outer` of the object.
    pub fn is_at(&self, [outer, inner]: [&str; 2]) -> bool {
        let is = |field: &Self, name| matches!(field.step, Step::Key(key) if key == name);
        let parent = self.parent.filter(|parent| is(parent, outer));
        is(self, inner)
            && parent
                .and_then(|parent| parent.parent)
                .is_some_and(Field::is_root)
    }

    /// The line of the field, or of the nearest field around it that is present.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The value of the field.
    pub fn node(&self) -> Option<&'a Node> {
        self.node
    }

    /// Whether the field is present and not null.
    pub fn is_present(&self) -> bool {
        self.node.is_some()
    }

    /// Whether the field is a mapping. Reports any other value.
    pub fn is_map(&self, report: &mut dyn Problems) -> bool {
        let Some(node) = self.node else { return false };
        if node.map().is_none() {
            report.warn(
                self,
                format!("{} is not a mapping", node.describe()),
                "write `key: value` lines under it".to_owned(),
            );
        }
        node.map().is_some()
    }

    /// The elements of a list, without nulls.
    pub fn items<'s>(
        &'s self,
        report: &mut dyn Problems,
    ) -> impl Iterator<Item = Field<'s>> + use<'s, 'a> {
        let items = self.node.and_then(Node::list);
        if let (Some(node), None) = (self.node, items) {
            report.warn(
                self,
                format!("{} is not a list", node.describe()),
                "write the elements as a list".to_owned(),
            );
        }
        let items = items.unwrap_or_default().iter().enumerate();
        items.map(|(index, node)| {
            self.child(
                Some(node).filter(|node| !node.is_null()),
                Step::Index(index),
            )
        })
    }

    /// One element of a list; the list itself for `None`.
    pub fn element(&self, index: Option<usize>) -> Field<'_> {
        let Some(index) = index else {
            return Field {
                node: self.node,
                line: self.line,
                parent: self.parent,
                step: self.step,
            };
        };
        let items = self.node.and_then(Node::list).unwrap_or_default();
        self.child(
            items.get(index).filter(|node| !node.is_null()),
            Step::Index(index),
        )
    }

    /// The entries of a mapping whose values are text, such as annotations. Reports other entries.
    pub fn texts<'s>(&'s self, report: &mut dyn Problems) -> Vec<(&'s str, &'s str)> {
        self.entries(Field::text, report)
    }

    /// The entries of a mapping whose keys and values are names, such as labels. Reports other
    /// entries.
    pub fn labels<'s>(&'s self, report: &mut dyn Problems) -> Vec<(&'s str, &'s str)> {
        let mut entries = self.entries(Field::name, report);
        entries.retain(|(key, _)| {
            if !is_name(key) {
                let message = "a key is too long or has hidden characters; its entry is left out";
                report.warn(self, message.to_owned(), NAME.to_owned());
            }
            is_name(key)
        });
        entries
    }

    fn entries<'s>(
        &'s self,
        read: impl Fn(&Field<'s>, &mut dyn Problems) -> Option<&'s str>,
        report: &mut dyn Problems,
    ) -> Vec<(&'s str, &'s str)> {
        if !self.is_present() || !self.is_map(report) {
            return Vec::new();
        }
        let entries = self.node.and_then(Node::map).unwrap_or_default();
        entries
            .iter()
            .filter_map(|(key, node)| {
                let value = if node.is_null() {
                    Some("")
                } else {
                    read(&self.label(key, node), report)
                };
                Some((&**key, value?))
            })
            .collect()
    }

    fn label<'s>(&'s self, key: &'s str, node: &'s Node) -> Field<'s> {
        self.child(Some(node), Step::Label(key))
    }

    /// The entry `key` of a mapping such as labels, for warnings.
    pub fn entry<'s>(&'s self, key: &'s str) -> Field<'s> {
        self.child(self.node.and_then(|node| node.get(key)), Step::Label(key))
    }

    /// The entries of a mapping by key.
    pub fn by_key(&self) -> HashMap<&str, Field<'_>> {
        let entries = self.node.and_then(Node::map).unwrap_or_default();
        let fields = entries
            .iter()
            .map(|(key, node)| (&**key, self.label(key, node)));
        fields.collect()
    }

    /// The keys of a mapping, including those without a value.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = self.node.and_then(Node::map).unwrap_or_default();
        entries.iter().map(|(key, _)| &**key)
    }

    /// The field as text.
    pub fn text(&self, report: &mut dyn Problems) -> Option<&'a str> {
        let node = self.node?;
        let text = node.text();
        if text.is_none() {
            report.warn(
                self,
                format!("{} is not text", node.describe()),
                "write one value".to_owned(),
            );
        }
        text
    }

    /// The field as a name or a label value. An invalid one counts as absent.
    pub fn name(&self, report: &mut dyn Problems) -> Option<&'a str> {
        let text = self.text(report)?;
        if is_name(text) {
            return Some(text);
        }
        let message = format!(
            "{} is too long or has hidden characters, and counts as not written",
            self.node.map(Node::describe).unwrap_or_default()
        );
        report.warn(self, message, NAME.to_owned());
        None
    }

    /// The field as a boolean.
    pub fn boolean(&self, report: &mut dyn Problems) -> Option<bool> {
        let node = self.node?;
        let value = node.boolean();
        if value.is_none() {
            let message = format!(
                "{} is not a boolean and counts as not written",
                node.describe()
            );
            report.warn(self, message, "write true or false".to_owned());
        }
        value
    }

    /// The field as a value written as text or number. `remedy` describes valid values.
    pub fn parse<T: FromStr>(
        &self,
        what: &str,
        remedy: &str,
        report: &mut dyn Problems,
    ) -> Option<T> {
        self.parse_with(|text| text.parse().ok(), what, remedy, report)
    }

    /// The field as a value that `parse` reads. Reports a value for which it returns `None`.
    pub fn parse_with<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        what: &str,
        remedy: &str,
        report: &mut dyn Problems,
    ) -> Option<T> {
        let value = parse(self.text(report)?);
        if value.is_none() {
            let text = self.node.map(Node::describe).unwrap_or_default();
            report.warn(self, format!("{text} is not {what}"), remedy.to_owned());
        }
        value
    }
}

/// The path in the format of `kubectl explain`: `spec.ports[0].port`, `metadata.labels[a/b]`.
impl Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Key(key)
                if self
                    .parent
                    .is_some_and(|parent| matches!(parent.step, Step::Root)) =>
            {
                f.write_str(key)
            }
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Label(key) => write!(f, "[{key}]"),
        }
    }
}
