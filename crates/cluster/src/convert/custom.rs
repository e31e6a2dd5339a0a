//! Common parts of the custom resources: like an API server, this program uses an object only if
//! all of it is valid.

use std::str::FromStr;
use std::sync::Arc;

use topology_core::api_values::UnknownApiValue;
use topology_core::model::{Expression, Selector};
use topology_core::policy::LevelKey;

use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crd::{Object, Resource, VERSION, check, complete, prune};
use object_tree::Field;
use object_tree::{Node, Value};

/// Checks an object and returns it with its defaults filled in, if it is valid.
pub(crate) fn sound(
    root: &Field<'_>,
    resource: &'static Resource,
    report: &mut Report,
) -> Option<Node> {
    checked(root, resource, complete, report)
}

/// The same without the fields that this version does not know. For objects that only the controller writes: a later
/// version of it may write more.
pub(crate) fn sound_part(
    root: &Field<'_>,
    resource: &'static Resource,
    report: &mut Report,
) -> Option<Node> {
    let known = |spec: &Node, object: &Object| complete(&prune(spec, object), object);
    checked(root, resource, known, report)
}

fn checked(
    root: &Field<'_>,
    resource: &'static Resource,
    complete: impl Fn(&Node, &Object) -> Node,
    report: &mut Report,
) -> Option<Node> {
    version(root, resource, report)?;
    let node = root.node()?;
    let entries = node.map()?.iter().map(|(key, value)| {
        let value = match &**key {
            "spec" => complete(value, resource.spec()),
            _ => value.clone(),
        };
        (key.clone(), value)
    });
    let whole = Node::new(node.line, Value::Map(entries.collect()));
    let field = Field::root(&whole);
    let spec = field.get("spec");
    if !spec.is_present() {
        let message = format!("missing; the {} cannot be used as it is", resource.noun());
        report.warn(&spec, message, "write the desired values under `spec:`");
        return None;
    }
    check(&spec, resource.spec(), resource.noun(), report).then_some(whole)
}

fn version(root: &Field<'_>, resource: &Resource, report: &mut Report) -> Option<()> {
    let field = root.get("apiVersion");
    let version = field.text(report)?;
    if version.rsplit('/').next() == Some(VERSION) {
        return Some(());
    }
    let message = format!(
        "`{version}` is not a version of the {} that this program reads; it is not used",
        resource.noun()
    );
    report.warn(&field, message, format!("use {}/{VERSION}", crd::GROUP));
    None
}

/// One of the values that the schema allows. The schema has refused every other value.
pub(crate) fn enum_value<T: FromStr<Err = UnknownApiValue>>(
    field: &Field<'_>,
    report: &mut Report,
) -> Option<T> {
    field.parse("a known word", "", report)
}

/// A number. The schema has checked its range.
pub(crate) fn number<T: FromStr>(field: &Field<'_>, report: &mut Report) -> Option<T> {
    field.parse("a whole number", "", report)
}

pub(crate) fn names(
    field: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for item in field.items(report) {
        names.extend(item.text(report).map(|text| interner.text(text)));
    }
    names
}

/// The level of a label key, or of its short name.
pub(crate) fn key(field: &Field<'_>, report: &mut Report) -> Option<LevelKey> {
    match LevelKey::parse(field.text(report)?) {
        Ok(key) => Some(key),
        Err(problem) => {
            report.warn(field, problem, "");
            None
        }
    }
}

pub(crate) fn selector(
    field: &Field<'_>,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Selector> {
    let listed = field.get("matchExpressions");
    let mut expressions = Vec::new();
    for item in listed.items(report) {
        expressions.push(Expression {
            key: interner.text(item.get("key").text(report)?),
            operator: enum_value(&item.get("operator"), report)?,
            values: names(&item.get("values"), interner, report),
        });
    }
    Some(Selector {
        labels: meta::texts(&field.get("matchLabels"), interner, report),
        expressions,
    })
}
