//! The annotations, and the fields of each resource, as Markdown.

use topology_core::policy::{ANNOTATIONS, MAX_LEVELS, ValueKind};

use super::agent::AGENT;
use super::drain::DRAIN;
use super::map::MAP;
use super::policy::{CLUSTER_POLICY, NAMESPACE_POLICY};
use super::property::{Need, Object, Property, Resource, Shape};

/// Every table, under the name of its markers.
pub(super) fn all() -> [(&'static str, String); 5] {
    [
        ("annotations", annotations()),
        ("policy fields", policies()),
        ("drain fields", resource(&DRAIN)),
        ("map fields", resource(&MAP)),
        ("report fields", fields("status.", &AGENT.status)),
    ]
}

fn annotations() -> String {
    let mut text =
        String::from("| annotation | value | default | meaning |\n| --- | --- | --- | --- |\n");
    text.extend(ANNOTATIONS.iter().map(|one| {
        let value = taken(&one.value);
        format!(
            "| `{}` | {value} | {} | {} |\n",
            one.name, one.default, one.about
        )
    }));
    text
}

/// What an annotation takes.
fn taken(value: &ValueKind) -> String {
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        words.join(", ")
    };
    match value {
        ValueKind::Word(known) => words(known),
        ValueKind::Levels => {
            format!("levels, nearest first: `node,zone,*`; at most {MAX_LEVELS}, none twice")
        }
        ValueKind::Weights { most } => format!(
            "`node=80,zone=15,*=5`, with or without `%`; whole numbers from 0 to {most}, or 0% to 100%, their sum is free; at most {MAX_LEVELS} levels"
        ),
        ValueKind::Number { least, most } => format!("a whole number from {least} to {most}"),
        ValueKind::Thresholds { most } => {
            format!("`zone=2`, `zone=50%`, several with commas; 1 to {most}, or 0% to 100%")
        }
        ValueKind::Percent { least, most, none } => {
            format!("percent from {least} to {most}, or `{none}`")
        }
        ValueKind::Domains => "`node`, `zone:soft`, several with commas".to_owned(),
        ValueKind::Seconds { most } => format!("seconds from 0 to {most}"),
        ValueKind::Name => "a name".to_owned(),
    }
}

/// Both kinds of policies in one table: one has all that the other has.
fn policies() -> String {
    let mut text = resource(&CLUSTER_POLICY);
    let own: Vec<String> = CLUSTER_POLICY
        .spec
        .properties()
        .filter(|one| {
            let mut others = NAMESPACE_POLICY.spec.properties();
            others.all(|other| other.name != one.name)
        })
        .map(|one| format!("`{}`", one.name))
        .collect();
    let own = own.join(", ");
    text.extend([format!(
        "\nA `{}` has the same fields but {own}, and these rules besides:\n\n",
        NAMESPACE_POLICY.kind
    )]);
    let common = CLUSTER_POLICY.spec.rules().count();
    let extra = NAMESPACE_POLICY.spec.rules().count().saturating_sub(common);
    for rule in NAMESPACE_POLICY.spec.rules().take(extra) {
        text.extend([format!(
            "- `{}`: {}; {}.\n",
            rule.at, rule.problem, rule.remedy
        )]);
    }
    text
}

fn resource(resource: &Resource) -> String {
    fields("", &resource.spec)
}

fn fields(prefix: &str, object: &Object) -> String {
    let mut text =
        String::from("| field | value | default | meaning |\n| --- | --- | --- | --- |\n");
    rows(&mut text, prefix, object);
    let mut rules = Vec::new();
    gather(&mut rules, prefix, object);
    if !rules.is_empty() {
        text.push_str("\nWhat is refused besides values out of range:\n\n");
        text.extend(rules);
    }
    text
}

fn rows(text: &mut String, prefix: &str, object: &Object) {
    for property in object.properties() {
        let name = format!("{prefix}{}", property.name);
        text.extend([format!(
            "| `{name}` | {} | {} | {} |\n",
            value(&property.shape),
            default(property),
            meaning(property)
        )]);
        if let Some((inner, mark)) = inner(&property.shape) {
            rows(text, &format!("{name}{mark}."), inner);
        }
    }
}

fn gather(rules: &mut Vec<String>, prefix: &str, object: &Object) {
    let own = object.rules().map(|rule| {
        let at = format!("{prefix}{}", rule.at);
        let at = at.trim_end_matches('.');
        format!("- `{at}`: {}; {}.\n", rule.problem, rule.remedy)
    });
    rules.extend(own);
    for property in object.properties() {
        if let Some((inner, mark)) = inner(&property.shape) {
            gather(rules, &format!("{prefix}{}{mark}.", property.name), inner);
        }
    }
}

/// The object in a property whose fields are told too; selectors are those of Kubernetes.
fn inner(shape: &Shape) -> Option<(&'static Object, &'static str)> {
    match shape {
        Shape::Object(object) if !object.atomic => Some((object, "")),
        Shape::List {
            of: Shape::Object(object),
            ..
        } => Some((object, "[]")),
        Shape::Map {
            of: Shape::Object(object),
            ..
        } => Some((object, "{}")),
        Shape::Word(_)
        | Shape::Text(_)
        | Shape::Number { .. }
        | Shape::Flag
        | Shape::Time
        | Shape::List { .. }
        | Shape::Map { .. }
        | Shape::Object(_) => None,
    }
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Word(words) => {
            let names: Vec<String> = words
                .iter()
                .map(|word| format!("`{}`", word.name))
                .collect();
            names.join(", ")
        }
        Shape::Text(text) => text.what.to_owned(),
        Shape::Number { least, most } => format!("{least} to {most}"),
        Shape::Flag => "`true`, `false`".to_owned(),
        Shape::Time => "time".to_owned(),
        Shape::List {
            of: Shape::Object(_),
            most,
            ..
        } => format!("list, at most {most}"),
        Shape::List { of, most, .. } => format!("list, at most {most}, of: {}", value(of)),
        Shape::Map {
            of: Shape::Object(_),
            most,
            keys,
        } => format!("by {keys}, at most {most}"),
        Shape::Map { of, keys, .. } => format!("{keys}: {}", value(of)),
        Shape::Object(object) if object.atomic => "label selector".to_owned(),
        Shape::Object(_) => String::new(),
    }
}

fn default(property: &Property) -> String {
    match property.need {
        Need::Required => "required".to_owned(),
        Need::Optional | Need::Text("") => String::new(),
        Need::Text(text) => format!("`{text}`"),
        Need::Number(number) => number.to_string(),
        Need::Flag(flag) => format!("`{flag}`"),
        Need::EmptyList => "`[]`".to_owned(),
        Need::EmptyMap if inner(&property.shape).is_some() => String::new(),
        Need::EmptyMap => "`{}`".to_owned(),
    }
}

fn meaning(property: &Property) -> String {
    let mut text = property.about.to_owned();
    if let Shape::Word(words) = &property.shape {
        for word in words.iter().filter(|word| !word.about.is_empty()) {
            text.extend([" `", word.name, "`: ", word.about, "."]);
        }
    }
    text
}
