//! Makes the `CustomResourceDefinition` of a resource: structural schema, defaults, CEL rules,
//! printer columns.

use super::group::{GROUP, VERSION};
use super::property::{Need, Object, PrinterColumn, Property, Resource, Shape, Text};
use super::rule::Rule;
use super::write::Yaml;

const HEADER: &str = "# Written by `cargo xtask codegen` from crates/crd/src; do not edit.\n";

pub(super) fn of(resource: &Resource) -> String {
    let name = format!("{}.{GROUP}", resource.plural);
    let document = Yaml::Map(vec![
        ("apiVersion", Yaml::text("apiextensions.k8s.io/v1")),
        ("kind", Yaml::text("CustomResourceDefinition")),
        ("metadata", Yaml::Map(vec![("name", Yaml::text(name))])),
        ("spec", spec(resource)),
    ]);
    format!("{HEADER}{}", document.document())
}

fn spec(resource: &Resource) -> Yaml {
    let singular = resource.kind.to_ascii_lowercase();
    let names = Yaml::Map(vec![
        ("kind", Yaml::text(resource.kind)),
        ("listKind", Yaml::text(format!("{}List", resource.kind))),
        ("plural", Yaml::text(resource.plural)),
        ("singular", Yaml::text(singular)),
        ("shortNames", Yaml::List(vec![Yaml::text(resource.short)])),
        ("categories", Yaml::List(vec![Yaml::text("ipvs-topo")])),
    ]);
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let version = version(resource);
    Yaml::Map(vec![
        ("group", Yaml::text(GROUP)),
        ("names", names),
        ("scope", Yaml::text(scope)),
        ("versions", Yaml::List(vec![version])),
    ])
}

fn version(resource: &Resource) -> Yaml {
    let mut entries = vec![
        ("name", Yaml::text(VERSION)),
        ("served", Yaml::plain(true)),
        ("storage", Yaml::plain(true)),
    ];
    if !resource.status.is_nothing() {
        let status = Yaml::Map(vec![("status", Yaml::Map(Vec::new()))]);
        entries.push(("subresources", status));
    }
    let columns = resource.columns.iter().map(column).collect();
    entries.push(("additionalPrinterColumns", Yaml::List(columns)));
    let schema = Yaml::Map(vec![("openAPIV3Schema", root(resource))]);
    entries.push(("schema", schema));
    Yaml::Map(entries)
}

fn column(column: &PrinterColumn) -> Yaml {
    let mut entries = vec![
        ("name", Yaml::text(column.name)),
        ("type", Yaml::text(column.kind)),
        ("jsonPath", Yaml::text(column.path)),
        ("description", Yaml::text(column.about)),
    ];
    if column.wide {
        entries.push(("priority", Yaml::plain(1)));
    }
    Yaml::Map(entries)
}

fn root(resource: &Resource) -> Yaml {
    let text = || Yaml::Map(vec![("type", Yaml::text("string"))]);
    let with = |object: &Object, about: String| {
        let mut entries = vec![("description", Yaml::text(about))];
        entries.extend(of_object(object));
        Yaml::Map(entries)
    };
    let mut properties = vec![
        ("apiVersion", text()),
        ("kind", text()),
        ("metadata", Yaml::Map(vec![("type", Yaml::text("object"))])),
    ];
    let mut entries = vec![
        ("description", Yaml::text(resource.about)),
        ("type", Yaml::text("object")),
    ];
    if !resource.spec.is_nothing() {
        entries.push(("required", Yaml::List(vec![Yaml::text("spec")])));
        let about = "The desired state.".to_owned();
        properties.push(("spec", with(&resource.spec, about)));
    }
    if !resource.status.is_nothing() {
        let about = format!("The observed state, written by {}.", resource.status_by);
        properties.push(("status", with(&resource.status, about)));
    }
    entries.push(("properties", Yaml::Map(properties)));
    Yaml::Map(entries)
}

fn of_object(object: &Object) -> Vec<(&'static str, Yaml)> {
    let mut entries = vec![("type", Yaml::text("object"))];
    if object.atomic {
        entries.push(("x-kubernetes-map-type", Yaml::text("atomic")));
    }
    let required: Vec<Yaml> = object
        .properties()
        .filter(|property| property.need == Need::Required)
        .map(|property| Yaml::text(property.name))
        .collect();
    if !required.is_empty() {
        entries.push(("required", Yaml::List(required)));
    }
    let properties = object
        .properties()
        .map(|property| (property.name, of_property(property)));
    entries.push(("properties", Yaml::Map(properties.collect())));
    let rules: Vec<Yaml> = object.rules().map(validation).collect();
    if !rules.is_empty() {
        entries.push(("x-kubernetes-validations", Yaml::List(rules)));
    }
    entries
}

fn validation(rule: &Rule) -> Yaml {
    let mut entries = vec![
        ("rule", Yaml::text(rule.holds.cel("self"))),
        (
            "message",
            Yaml::text(format!("{}; {}", rule.problem, rule.remedy)),
        ),
    ];
    if !rule.at.is_empty() {
        entries.push(("fieldPath", Yaml::text(format!(".{}", rule.at))));
    }
    Yaml::Map(entries)
}

fn of_property(property: &Property) -> Yaml {
    let mut entries = vec![("description", Yaml::text(description(property)))];
    entries.extend(of_shape(&property.shape));
    entries.extend(default(property).map(|default| ("default", default)));
    Yaml::Map(entries)
}

/// The default as a complete value: the API server checks it against the rules before it fills in
/// defaults inside.
fn default(property: &Property) -> Option<Yaml> {
    Some(match (&property.need, &property.shape) {
        (Need::Required | Need::Optional, _) => return None,
        (Need::Text(text), _) => Yaml::text(*text),
        (Need::Number(number), _) => Yaml::plain(number),
        (Need::Flag(flag), _) => Yaml::plain(flag),
        (Need::EmptyList, _) => Yaml::List(Vec::new()),
        (Need::EmptyMap, Shape::Object(object)) => {
            let properties = object.properties();
            Yaml::Map(
                properties
                    .filter_map(|one| Some((one.name, default(one)?)))
                    .collect(),
            )
        }
        (Need::EmptyMap, _) => Yaml::Map(Vec::new()),
    })
}

/// The text of the property, and the meaning of each word.
fn description(property: &Property) -> String {
    let mut text = property.about.to_owned();
    if let Shape::Word(words) = &property.shape {
        for word in words.iter().filter(|word| !word.about.is_empty()) {
            text.extend([" ", word.name, ": ", word.about, "."]);
        }
    }
    text
}

fn of_shape(shape: &Shape) -> Vec<(&'static str, Yaml)> {
    match shape {
        Shape::Word(words) => {
            let names = words.iter().map(|word| Yaml::text(word.name)).collect();
            vec![("type", Yaml::text("string")), ("enum", Yaml::List(names))]
        }
        Shape::Text(text) => of_text(text),
        Shape::Number { least, most } => vec![
            ("type", Yaml::text("integer")),
            (
                "format",
                Yaml::text(if *most > 2_147_483_647 {
                    "int64"
                } else {
                    "int32"
                }),
            ),
            ("minimum", Yaml::plain(least)),
            ("maximum", Yaml::plain(most)),
        ],
        Shape::Flag => vec![("type", Yaml::text("boolean"))],
        Shape::Time => vec![
            ("type", Yaml::text("string")),
            ("format", Yaml::text("date-time")),
        ],
        Shape::List {
            of,
            least,
            most,
            set,
        } => {
            let kind = if *set { "set" } else { "atomic" };
            let mut entries = vec![
                ("type", Yaml::text("array")),
                ("x-kubernetes-list-type", Yaml::text(kind)),
            ];
            if *least > 0 {
                entries.push(("minItems", Yaml::plain(least)));
            }
            entries.push(("maxItems", Yaml::plain(most)));
            entries.push(("items", Yaml::Map(of_shape(of))));
            entries
        }
        Shape::Map { of, most, .. } => vec![
            ("type", Yaml::text("object")),
            ("maxProperties", Yaml::plain(most)),
            ("additionalProperties", Yaml::Map(of_shape(of))),
        ],
        Shape::Object(object) => of_object(object),
    }
}

fn of_text(text: &Text) -> Vec<(&'static str, Yaml)> {
    let mut entries = vec![("type", Yaml::text("string"))];
    if text.least > 0 {
        entries.push(("minLength", Yaml::plain(text.least)));
    }
    entries.push(("maxLength", Yaml::plain(text.most)));
    if !text.pattern.is_empty() {
        entries.push(("pattern", Yaml::text(text.pattern)));
    }
    entries
}
