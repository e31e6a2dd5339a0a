//! What the resources of ours have in common: they are sound as a whole or not used at all, as an API server would
//! have it.

use std::str::FromStr;
use std::sync::Arc;

use topology_core::api_values::UnknownApiValue;
use topology_core::model::{Expression, Selector};
use topology_core::policy::LevelKey;

use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crd::{Resource, VERSION, check, complete};
use object_tree::Field;
use object_tree::{Node, Value};

/// The object with its defaults filled in, if it is sound. What is wrong is reported.
pub(crate) fn sound(
    root: &Field<'_>,
    resource: &'static Resource,
    report: &mut Report,
) -> Option<Node> {
    version(root, resource, report)?;
    let node = root.node()?;
    let mut entries = node.map()?.to_vec();
    for (key, value) in &mut entries {
        if **key == *"spec" {
            *value = complete(value, resource.spec());
        }
    }
    let whole = Node::new(node.line, Value::Map(entries));
    let field = Field::root(&whole);
    let spec = field.get("spec");
    if !spec.is_present() {
        let message = format!("missing; the {} cannot be used as it is", resource.noun());
        report.warn(&spec, message, "write what is wanted under `spec:`");
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

/// One of the words that the schema lists, which has refused every other one.
pub(crate) fn enum_value<T: FromStr<Err = UnknownApiValue>>(
    field: &Field<'_>,
    report: &mut Report,
) -> Option<T> {
    field.parse("a known word", "", report)
}

/// A number that is in its range.
pub(crate) fn number<T: FromStr>(field: &Field<'_>, report: &mut Report) -> Option<T> {
    field.parse("a whole number", "", report)
}

/// The shared copies of a list of texts.
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

/// What a label's key, or its short name, stands for.
pub(crate) fn key(field: &Field<'_>, report: &mut Report) -> Option<LevelKey> {
    match LevelKey::parse(field.text(report)?) {
        Ok(key) => Some(key),
        Err(problem) => {
            report.warn(field, problem, "");
            None
        }
    }
}

/// A label selector.
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
