//! Makes the reference page `docs/policies.md`: every annotation, and every field of each kind, as
//! Markdown.

use topology_core::policy::{ANNOTATIONS, MAX_LEVELS, ValueKind};

use super::agent::AGENT;
use super::drain::DRAIN;
use super::group::{GROUP, VERSION};
use super::map::MAP;
use super::pod_locator::LOCATOR;
use super::pod_map::POD_MAP;
use super::policy::{CLUSTER_POLICY, NAMESPACE_POLICY};
use super::property::{Need, Object, Property, Resource, Shape, Text};

pub(super) const PAGE: &str = "policies.md";

const HEAD: &str = "# Policies, drains and annotations

`cargo xtask codegen` generates this page and the CRDs in `manifests/crds` from the same descriptions.
[topology.md](topology.md) explains what to use when; [troubleshooting.md](troubleshooting.md#conditions-of-policies-and-drains) lists conditions and reasons.
";

const ANNOTATIONS_HEAD: &str = "
## Annotations of a Service

Each name begins with `topology.ipvs-topo.io/`.

| annotation | value | default | meaning |
| --- | --- | --- | --- |
";

const FIELDS_HEAD: &str = "
| field | type | default | limits | description |
| --- | --- | --- | --- | --- |
";

pub(super) fn page() -> String {
    [
        HEAD.to_owned(),
        annotations(),
        kind(&CLUSTER_POLICY),
        namespace_policy(),
        kind(&DRAIN),
        kind(&MAP),
        kind(&POD_MAP),
        kind(&LOCATOR),
        kind(&AGENT),
    ]
    .concat()
}

fn annotations() -> String {
    let mut text = ANNOTATIONS_HEAD.to_owned();
    text.extend(ANNOTATIONS.iter().map(|one| {
        let value = taken(&one.value);
        format!(
            "| `{}` | {value} | {} | {} |\n",
            one.name, one.default, one.about
        )
    }));
    text
}

/// Describes the values that an annotation may have.
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

/// The heading of a kind, its purpose, and the command that lists its objects.
fn introduction(resource: &Resource) -> String {
    let scope = if resource.namespaced {
        "namespaced"
    } else {
        "cluster-wide"
    };
    let Resource { kind, about, .. } = resource;
    format!(
        "\n## {kind}\n\n{about}\n\n`apiVersion: {GROUP}/{VERSION}`, {scope}, `kubectl get {}`.\n",
        resource.short
    )
}

fn kind(resource: &Resource) -> String {
    let mut text = introduction(resource);
    text.push_str(&fields("spec.", &resource.spec));
    if !resource.status.is_nothing() {
        let by = resource.status_by;
        text.extend([format!("\nThe status is written by {by}:\n")]);
        text.push_str(&fields("status.", &resource.status));
    }
    text
}

/// Shows only the differences from the other kind of policy.
fn namespace_policy() -> String {
    let own = CLUSTER_POLICY.spec.properties().filter(|one| {
        let mut others = NAMESPACE_POLICY.spec.properties();
        others.all(|other| other.name != one.name)
    });
    let own: Vec<String> = own.map(|one| format!("`spec.{}`", one.name)).collect();
    let mut text = introduction(&NAMESPACE_POLICY);
    text.extend([format!(
        "\nIt has the fields, the rules and the status of a `{}`, without {}, and with these additional rules:\n\n",
        CLUSTER_POLICY.kind,
        own.join(", ")
    )]);
    let common = CLUSTER_POLICY.spec.rules().count();
    let extra = NAMESPACE_POLICY.spec.rules().count().saturating_sub(common);
    for rule in NAMESPACE_POLICY.spec.rules().take(extra) {
        text.extend([format!(
            "- `spec.{}`: {}; {}.\n",
            rule.at, rule.problem, rule.remedy
        )]);
    }
    text
}

fn fields(prefix: &str, object: &Object) -> String {
    if object.is_nothing() {
        return String::new();
    }
    let mut text = FIELDS_HEAD.to_owned();
    rows(&mut text, prefix, object);
    let mut rules = Vec::new();
    gather(&mut rules, prefix, object);
    if !rules.is_empty() {
        text.push_str("\nThe API server also refuses:\n\n");
        text.extend(rules);
    }
    text
}

fn rows(text: &mut String, prefix: &str, object: &Object) {
    for property in object.properties() {
        let name = format!("{prefix}{}", property.name);
        text.extend([format!(
            "| `{name}` | {} | {} | {} | {} |\n",
            type_of(&property.shape),
            default(property),
            limits(&property.shape),
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

/// The object in a property, if its fields have their own rows. A selector has none: Kubernetes
/// documents its fields.
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

fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::Word(_) | Shape::Text(_) => "string".to_owned(),
        Shape::Number { .. } => "integer".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::Time => "time".to_owned(),
        Shape::List { of, .. } => format!("list of {}", plural(of)),
        Shape::Map { of, .. } => format!("map of {}", plural(of)),
        Shape::Object(object) if object.atomic => "label selector".to_owned(),
        Shape::Object(_) => "object".to_owned(),
    }
}

fn plural(shape: &Shape) -> String {
    format!("{}s", type_of(shape))
}

fn limits(shape: &Shape) -> String {
    match shape {
        Shape::Word(words) => {
            let names = words.iter().map(|word| format!("`{}`", word.name));
            names.collect::<Vec<String>>().join(", ")
        }
        Shape::Text(Text { what, most, .. }) => format!("{what}, at most {most} characters"),
        Shape::Number { least, most } => format!("{least} to {most}"),
        Shape::Time => "RFC 3339".to_owned(),
        Shape::List {
            of, least, most, ..
        } => {
            let count = if *least > 0 {
                format!("{least} to {most} elements")
            } else {
                format!("at most {most} elements")
            };
            with(count, &limits(of))
        }
        Shape::Map { of, most, keys } => {
            with(format!("key: {keys}; at most {most} entries"), &limits(of))
        }
        Shape::Flag | Shape::Object(_) => String::new(),
    }
}

/// Joins the limit of a collection and that of each element, if it has one.
fn with(of_all: String, of_each: &str) -> String {
    if of_each.is_empty() {
        of_all
    } else {
        format!("{of_all}; each {of_each}")
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
