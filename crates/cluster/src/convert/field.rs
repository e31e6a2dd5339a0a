//! A place in an object: the value there, and the path to name it by in a warning.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use topology_core::policy::PREFIX;

use super::report::Report;
use crate::text::is_name;
use crate::yaml::Node;

/// What a name may be.
const NAME: &str = "use at most 253 visible characters";

/// A field of an object, present or not. Reading one never fails: what does not fit is reported
/// and counts as absent.
pub(crate) struct Field<'a> {
    node: Option<&'a Node>,
    /// The field's line, or that of the nearest thing around it that is there.
    line: u32,
    parent: Option<&'a Field<'a>>,
    step: Step<'a>,
}

/// The last part of a path.
#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
    Label(&'a str),
}

impl<'a> Field<'a> {
    /// The object itself.
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node: Some(node),
            line: node.line,
            parent: None,
            step: Step::Root,
        }
    }

    /// The field `key` in this one. Absent when this one is absent or is not a mapping.
    pub(crate) fn get<'s>(&'s self, key: &'s str) -> Field<'s> {
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
    pub(crate) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// Whether it is an annotation of ours.
    pub(crate) fn is_our_annotation(&self) -> bool {
        let at = |key| {
            self.parent
                .is_some_and(|parent| parent.is_at(["metadata", key]))
        };
        matches!(self.step, Step::Label(key) if key.starts_with(PREFIX)) && at("annotations")
    }

    /// Whether it is `spec.topologyKeys`, or in it.
    pub(crate) fn is_in_topology_keys(&self) -> bool {
        let path = ["spec", "topologyKeys"];
        self.is_at(path) || self.parent.is_some_and(|parent| parent.is_at(path))
    }

    /// Whether it is the field `inner` of the field `outer` of the object.
    fn is_at(&self, [outer, inner]: [&str; 2]) -> bool {
        let is = |field: &Self, name| matches!(field.step, Step::Key(key) if key == name);
        let parent = self.parent.filter(|parent| is(parent, outer));
        is(self, inner)
            && parent
                .and_then(|parent| parent.parent)
                .is_some_and(Field::is_root)
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// What is there.
    pub(crate) fn node(&self) -> Option<&'a Node> {
        self.node
    }

    pub(crate) fn is_present(&self) -> bool {
        self.node.is_some()
    }

    /// Whether the field is there and is a mapping; something else there is reported.
    pub(crate) fn is_map(&self, report: &mut Report) -> bool {
        let Some(node) = self.node else { return false };
        if node.map().is_none() {
            report.warn(
                self,
                format!("{} is not a mapping", node.describe()),
                "write `key: value` lines under it",
            );
        }
        node.map().is_some()
    }

    /// The elements of a list, without those that are null.
    pub(crate) fn items<'s>(
        &'s self,
        report: &mut Report,
    ) -> impl Iterator<Item = Field<'s>> + use<'s, 'a> {
        let items = self.node.and_then(Node::list);
        if let (Some(node), None) = (self.node, items) {
            report.warn(
                self,
                format!("{} is not a list", node.describe()),
                "write the elements as a list",
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
    pub(crate) fn element(&self, index: Option<usize>) -> Field<'_> {
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

    /// The entries of a mapping whose values are text, such as annotations; others are reported.
    pub(crate) fn texts<'s>(&'s self, report: &mut Report) -> Vec<(&'s str, &'s str)> {
        self.entries(Field::text, report)
    }

    /// The entries of a mapping whose keys and values are names, such as labels; others are reported.
    pub(crate) fn labels<'s>(&'s self, report: &mut Report) -> Vec<(&'s str, &'s str)> {
        let mut entries = self.entries(Field::name, report);
        entries.retain(|(key, _)| {
            if !is_name(key) {
                let message = "a key is too long or has hidden characters; its entry is left out";
                report.warn(self, message, NAME);
            }
            is_name(key)
        });
        entries
    }

    fn entries<'s>(
        &'s self,
        read: impl Fn(&Field<'s>, &mut Report) -> Option<&'s str>,
        report: &mut Report,
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

    /// The entry `key` of a mapping such as labels, for naming it in a warning.
    pub(crate) fn entry<'s>(&'s self, key: &'s str) -> Field<'s> {
        self.child(self.node.and_then(|node| node.get(key)), Step::Label(key))
    }

    /// The entries of a mapping by key.
    pub(crate) fn by_key(&self) -> HashMap<&str, Field<'_>> {
        let entries = self.node.and_then(Node::map).unwrap_or_default();
        let fields = entries
            .iter()
            .map(|(key, node)| (&**key, self.label(key, node)));
        fields.collect()
    }

    /// The keys of a mapping, those without a value included.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = self.node.and_then(Node::map).unwrap_or_default();
        entries.iter().map(|(key, _)| &**key)
    }

    /// The field as text.
    pub(crate) fn text(&self, report: &mut Report) -> Option<&'a str> {
        let node = self.node?;
        let text = node.text();
        if text.is_none() {
            report.warn(
                self,
                format!("{} is not text", node.describe()),
                "write one value",
            );
        }
        text
    }

    /// The field as a name or the value of a label; what nothing can be called counts as not written.
    pub(crate) fn name(&self, report: &mut Report) -> Option<&'a str> {
        let text = self.text(report)?;
        if is_name(text) {
            return Some(text);
        }
        let message = format!(
            "{} is too long or has hidden characters, and counts as not written",
            self.node.map(Node::describe).unwrap_or_default()
        );
        report.warn(self, message, NAME);
        None
    }

    /// The field as a boolean.
    pub(crate) fn boolean(&self, report: &mut Report) -> Option<bool> {
        let node = self.node?;
        let value = node.boolean();
        if value.is_none() {
            let message = format!(
                "{} is not a boolean and counts as not written",
                node.describe()
            );
            report.warn(self, message, "write true or false");
        }
        value
    }

    /// The field as a value that is written as text or a number; `remedy` says which are right.
    pub(crate) fn parse<T: FromStr>(
        &self,
        what: &str,
        remedy: &str,
        report: &mut Report,
    ) -> Option<T> {
        let text = self.text(report)?;
        let value = text.parse().ok();
        if value.is_none() {
            let text = self.node.map(Node::describe).unwrap_or_default();
            report.warn(self, format!("{text} is not {what}"), remedy);
        }
        value
    }
}

/// The path as `kubectl explain` writes it: `spec.ports[0].port`, `metadata.labels[a/b]`.
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
