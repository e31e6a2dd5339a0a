//! Checks that the descriptions are consistent and that the API server accepts the generated texts.

use std::collections::BTreeSet;

use super::property::{
    DOMAIN, IP_ADDRESS, IP_RANGE, LABEL_KEY, LABEL_VALUE, LEVEL_KEY, Need, OBJECT_NAME, Object,
    Property, SHORT_NAME, Shape, Text,
};
use super::rule::Expr;
use super::*;
use object_tree::{self as yaml, Node};

fn parse(text: &str) -> Node {
    let mut documents = Vec::new();
    yaml::read(text.as_bytes(), |node| documents.push(node)).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

/// Every object of a description, with its path.
fn objects() -> Vec<(String, &'static Object)> {
    fn walk(path: &str, shape: &'static Shape, found: &mut Vec<(String, &'static Object)>) {
        match shape {
            Shape::Object(object) => object_of(path, object, found),
            Shape::List { of, .. } | Shape::Map { of, .. } => walk(path, of, found),
            _ => {}
        }
    }
    fn object_of(path: &str, object: &'static Object, found: &mut Vec<(String, &'static Object)>) {
        found.push((path.to_owned(), object));
        for property in object.properties() {
            walk(&format!("{path}.{}", property.name), &property.shape, found);
        }
    }
    let mut found = Vec::new();
    for resource in ALL {
        object_of(resource.kind, &resource.spec, &mut found);
        object_of(resource.kind, &resource.status, &mut found);
    }
    found
}

fn property(object: &Object, path: &str) -> Option<&'static Property> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let property = object.properties().find(|one| one.name == first)?;
    match (&property.shape, rest) {
        (_, "") => Some(property),
        (Shape::Object(inner), rest) => self::property(inner, rest),
        _ => None,
    }
}

/// Whether a property of the objects in a mapping is required.
fn need_in(object: &Object, map: &str, name: &str) -> Need {
    let Shape::Map {
        of: Shape::Object(value),
        ..
    } = &property(object, map).unwrap().shape
    else {
        panic!("{map} is not a mapping of objects");
    };
    property(value, name).unwrap().need
}

/// Collects the names that an expression requires to be set, and the names whose values it uses.
fn names(expr: &Expr, object: &Object, asked: &mut Vec<String>, used: &mut Vec<(String, Need)>) {
    let mut value_of = |name: &str| {
        let need = property(object, name)
            .unwrap_or_else(|| panic!("no property {name}"))
            .need;
        used.push((name.to_owned(), need));
    };
    let item = |name: &str| match &property(object, name).unwrap().shape {
        Shape::List {
            of: Shape::Object(item),
            ..
        } => *item,
        other => panic!("{name} is {other:?}"),
    };
    match expr {
        Expr::Has(name) => {
            assert_eq!(
                property(object, name).unwrap().need,
                Need::Optional,
                "{name} is always there"
            );
            asked.push((*name).to_owned());
        }
        Expr::Is(name, word) => {
            value_of(name);
            let Shape::Word(words) = &property(object, name).unwrap().shape else {
                panic!("{name} is not a word");
            };
            assert!(words.iter().any(|one| one.name == *word), "{name}: {word}");
        }
        Expr::Set(name) | Expr::AtMost(name, _) | Expr::Empty(name) => value_of(name),
        Expr::Distinct(list, name, _) => {
            value_of(list);
            assert!(property(item(list), name).is_some());
        }
        Expr::Some(list, each)
        | Expr::Every(list, each)
        | Expr::Last(list, each)
        | Expr::OnlyLast(list, each) => {
            value_of(list);
            names(each, item(list), asked, used);
        }
        Expr::AsLong(map, inner, list) => {
            value_of(map);
            value_of(list);
            assert_eq!(need_in(object, map, inner), Need::EmptyList);
        }
        Expr::Not(inner) => names(inner, object, asked, used),
        Expr::Same(first, second) | Expr::If(first, second) => {
            names(first, object, asked, used);
            names(second, object, asked, used);
        }
        Expr::Either(options) => {
            for option in *options {
                names(option, object, asked, used);
            }
        }
    }
}

#[test]
fn rules_use_only_properties_that_are_present_or_checked() {
    let mut count = 0;
    for (path, object) in objects() {
        for rule in object.rules() {
            count += 1;
            assert!(
                rule.at.is_empty() || property(object, rule.at).is_some(),
                "{path}: {}",
                rule.at
            );
            assert!(
                !rule.problem.is_empty() && !rule.remedy.is_empty(),
                "{path}: {}",
                rule.at
            );
            let (mut asked, mut used) = (Vec::new(), Vec::new());
            names(&rule.holds, object, &mut asked, &mut used);
            for (name, need) in used {
                assert!(
                    need != Need::Optional || asked.contains(&name),
                    "{path}: {name} may be absent"
                );
            }
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn names_are_unique_and_everything_is_described() {
    for (path, object) in objects() {
        let mut seen = BTreeSet::new();
        for property in object.properties() {
            assert!(seen.insert(property.name), "{path}.{} twice", property.name);
            assert!(property.about.ends_with('.'), "{path}.{}", property.name);
            assert!(
                !property.about.contains('|'),
                "{path}.{}: breaks the table",
                property.name
            );
        }
    }
}

const SCHEMA_KEYS: [&str; 20] = [
    "description",
    "type",
    "format",
    "default",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "items",
    "maxProperties",
    "additionalProperties",
    "properties",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Checks the rules for structural schemas, as far as this crate uses them.
fn structural(path: &str, node: &Node) {
    for (key, _) in node.map().unwrap() {
        assert!(SCHEMA_KEYS.contains(&&**key), "{path}: {key}");
    }
    match node.get("type").and_then(Node::text) {
        Some("object") => structural_object(path, node),
        Some("array") => {
            assert!(
                node.get("maxItems").is_some(),
                "{path}: CEL counts the cost of what is not bounded"
            );
            let set = node.get("x-kubernetes-list-type").and_then(Node::text) == Some("set");
            let items = node.get("items").unwrap();
            assert!(
                !set || items.get("type").and_then(Node::text) == Some("string"),
                "{path}"
            );
            structural(&format!("{path}[]"), items);
        }
        Some("string" | "integer" | "boolean") => {}
        other => panic!("{path}: {other:?}"),
    }
}

fn structural_object(path: &str, node: &Node) {
    let properties = node.get("properties");
    let others = node.get("additionalProperties");
    assert!(properties.is_none() || others.is_none(), "{path}");
    for required in node
        .get("required")
        .and_then(Node::list)
        .unwrap_or_default()
    {
        let name = required.text().unwrap();
        assert!(properties.unwrap().get(name).is_some(), "{path}: {name}");
    }
    for (name, inner) in properties.and_then(Node::map).unwrap_or_default() {
        structural(&format!("{path}.{name}"), inner);
    }
    if let Some(inner) = others {
        structural(&format!("{path}.*"), inner);
    }
}

#[test]
fn the_definitions_are_structural_schemas_with_columns() {
    for resource in ALL {
        let definition = parse(&definition::of(resource));
        let at = |path: &str| {
            path.split('.')
                .fold(&definition, |node, key| match key.parse::<usize>() {
                    Ok(index) => &node.list().unwrap()[index],
                    Err(_) => node.get(key).unwrap_or_else(|| panic!("{path}")),
                })
        };
        assert_eq!(
            at("metadata.name").text().unwrap(),
            format!("{}.{GROUP}", resource.plural)
        );
        assert_eq!(at("spec.names.shortNames.0").text(), Some(resource.short));
        let version = at("spec.versions.0");
        assert_eq!(
            version.get("subresources").is_some(),
            !resource.status.is_nothing()
        );
        assert_eq!(
            at("spec.versions.0.additionalPrinterColumns")
                .list()
                .unwrap()
                .len(),
            resource.columns.len()
        );
        let schema = at("spec.versions.0.schema.openAPIV3Schema");
        let text = schema.get("properties").unwrap();
        for (part, object) in [("spec", &resource.spec), ("status", &resource.status)] {
            match text.get(part) {
                Some(schema) => structural(part, schema),
                None => assert!(object.is_nothing(), "{} has no {part}", resource.kind),
            }
        }
    }
}

#[test]
fn the_defaults_alone_are_sound() {
    for resource in ALL {
        for property in resource.spec.properties() {
            if let Shape::Object(inner) = &property.shape {
                let empty = Node::new(1, yaml::Value::Map(Vec::new()));
                let whole = complete(&empty, inner);
                for one in inner.properties() {
                    let written = whole.get(one.name).is_some();
                    let has_default = !matches!(one.need, Need::Required | Need::Optional);
                    assert_eq!(written, has_default, "{}.{}", property.name, one.name);
                }
            }
        }
    }
}

#[test]
fn patterns_accept_the_same_texts_as_the_reader() {
    let long = "a".repeat(64);
    let texts = [
        "a",
        "A",
        "1",
        "a-b",
        "a_b",
        "a.b",
        "-a",
        "a-",
        ".a",
        "a.",
        "_a",
        "",
        " ",
        "a b",
        "\u{e9}",
        "a\u{e9}",
        "a/b",
        "example.com/rack",
        "Example.com/rack",
        "example..com/rack",
        "-x.com/rack",
        "x-.com/rack",
        "/rack",
        "example.com/",
        "a/b/c",
        "*",
        "node",
        "topology.kubernetes.io/zone",
        "HTTP",
        "http-2",
        "a\n",
        "\na",
        "n1.example.com",
        "fd00::1",
        &long,
        &long[1..],
    ];
    let kinds: [(&str, Text); 8] = [
        ("OBJECT_NAME", OBJECT_NAME),
        ("LABEL_KEY", LABEL_KEY),
        ("LEVEL_KEY", LEVEL_KEY),
        ("LABEL_VALUE", LABEL_VALUE),
        ("DOMAIN", DOMAIN),
        ("SHORT_NAME", SHORT_NAME),
        ("IP_ADDRESS", IP_ADDRESS),
        ("POD_NAME", pod_map::POD_NAME),
    ];
    for (name, kind) in kinds {
        let pattern = regex::Regex::new(kind.pattern).unwrap();
        for text in texts {
            let length = (kind.least..=kind.most).contains(&text.chars().count());
            assert_eq!(
                pattern.is_match(text) && length,
                (kind.fits)(text) && length,
                "{name}: {text:?}"
            );
        }
    }
}

#[test]
fn a_range_is_an_address_with_a_number_of_bits() {
    let pattern = regex::Regex::new(IP_RANGE.pattern).unwrap();
    for (text, is_range) in [
        ("10.244.1.0/24", true),
        ("fd00:10:244:1::/64", true),
        ("::/0", true),
        ("10.244.1.0", false),
        ("10.244.1.0/", false),
        ("/24", false),
        ("10.244.1.0/+1", false),
        ("10.244.1.0/0024", false),
        ("10.244.1.0/24/24", false),
        ("FD00::/64", false),
    ] {
        assert_eq!(pattern.is_match(text), is_range, "{text}");
        assert_eq!((IP_RANGE.fits)(text), is_range, "{text}");
    }
}

#[test]
fn only_the_name_of_a_pod_may_have_dots_and_not_its_namespace() {
    let pattern = regex::Regex::new(pod_map::POD_NAME.pattern).unwrap();
    for (text, is_name) in [
        ("shop/cart-0", true),
        ("shop/cart.v2", true),
        ("my.shop/cart", false),
        ("shop", false),
        ("shop/cart/0", false),
    ] {
        assert_eq!(pattern.is_match(text), is_name, "{text}");
        assert_eq!((pod_map::POD_NAME.fits)(text), is_name, "{text}");
    }
}

#[test]
fn label_keys_are_those_of_the_engine() {
    for text in [
        "a",
        "example.com/rack",
        "a b",
        "-a",
        "Example.com/x",
        "/x",
        "x/",
        "a/b/c",
        "zone",
        "a..b/c",
    ] {
        let engine = topology_core::policy::LevelKey::parse(text).is_ok();
        assert_eq!(engine, (LABEL_KEY.fits)(text), "{text}");
    }
}

#[test]
fn a_map_that_has_too_few_values_for_a_node_breaks_its_rule() {
    let [rule] = MAP.spec.rules().collect::<Vec<_>>()[..] else {
        panic!("one rule");
    };
    let holds = |nodes: &str| {
        let spec = format!("shard: 0\nkeys: [a, b]\nnodes: {nodes}\n");
        rule.holds.holds(&parse(&spec))
    };
    assert!(holds("{n1: {v: [x, y]}, n2: {v: ['', y]}}"));
    assert!(holds("{}"));
    assert!(!holds("{n1: {v: [x, y]}, n2: {v: [x]}}"));
    assert!(!holds("{n1: {v: [x, y, z]}}"));
}

#[test]
fn every_admission_policy_has_a_binding_and_a_remedy() {
    let mut checks = 0;
    let components = admission::of_components();
    for (name, text) in admission::all().into_iter().chain(components) {
        let mut documents = Vec::new();
        yaml::read(text.as_bytes(), |node| documents.push(node)).unwrap();
        let [policy, binding] = &documents[..] else {
            panic!("{name}");
        };
        let name_of = |node: &Node| {
            let metadata = node.get("metadata").unwrap();
            metadata.get("name").unwrap().text().unwrap().to_owned()
        };
        let spec =
            |node: &'static str, of: &Node| of.get("spec").unwrap().get(node).unwrap().clone();
        assert_eq!(spec("policyName", binding).text(), Some(&*name_of(policy)));
        for check in spec("validations", policy).list().unwrap() {
            checks += 1;
            let expression = check.get("expression").unwrap().text().unwrap();
            let message = check.get("message").unwrap().text().unwrap();
            assert!(message.len() > 20 && !message.contains('\n'), "{message}");
            let open = expression.matches('(').count();
            assert_eq!(open, expression.matches(')').count(), "{expression}");
        }
    }
    assert!(checks > 30, "{checks}");
}

#[test]
fn every_annotation_that_is_documented_is_checked_at_admission() {
    let (_, text) = admission::all().remove(0);
    for one in &topology_core::policy::ANNOTATIONS {
        let mine = format!("{}{}: ", topology_core::policy::PREFIX, one.name);
        assert!(text.contains(&mine), "no check of {}", one.name);
    }
}

/// Collects the paths of the properties of an object and of the objects in it.
fn paths_of(path: &str, object: &Object, found: &mut BTreeSet<String>) {
    for property in object.properties() {
        let path = format!("{path}.{}", property.name);
        match &property.shape {
            Shape::Object(inner)
            | Shape::List {
                of: Shape::Object(inner),
                ..
            }
            | Shape::Map {
                of: Shape::Object(inner),
                ..
            } => paths_of(&path, inner, found),
            _ => drop(found.insert(path)),
        }
    }
}

fn paths_in(path: &str, value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                paths_in(&format!("{path}.{name}"), value, found);
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                paths_in(path, item, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

struct Found(Vec<String>);

impl object_tree::Problems for Found {
    fn warn(&mut self, field: &object_tree::Field<'_>, message: String, remedy: String) {
        self.0.push(format!("{field}: {message}; {remedy}"));
    }
}

/// Compares the report of the agent with its description, field by field.
#[test]
fn a_full_report_has_the_described_fields_and_is_valid() {
    use crate::topology_agent::{
        AgentStatus, DrainInUse, Fallback, FallbackReason, NodeWarning, PolicyInUse,
    };
    use topology_core::model::PolicyName;

    let policy = |policy| PolicyInUse {
        policy,
        generation: 3,
        services: 4,
    };
    let near = PolicyName::namespaced("shop", "near");
    let fallback = |reason| Fallback {
        service: topology_core::model::ObjectName::new("shop", "cart"),
        policy: Some(near.clone()),
        reason,
        from: Some("Prefer".to_owned()),
        to: "Uniform".to_owned(),
        since: "2026-11-21T20:00:00Z".to_owned(),
    };
    let status = AgentStatus {
        version: "0.1.0".to_owned(),
        policies: vec![policy(PolicyName::cluster("all")), policy(near.clone())],
        drains: vec![DrainInUse {
            name: "b".to_owned(),
            ..DrainInUse::default()
        }],
        fallbacks: FallbackReason::ALL.into_iter().map(fallback).collect(),
        warnings: vec![NodeWarning::default()],
        ..AgentStatus::default()
    };
    let value = serde_json::to_value(&status).unwrap();
    let (mut described, mut written) = (BTreeSet::new(), BTreeSet::new());
    paths_of("", &AGENT.status, &mut described);
    paths_in("", &value, &mut written);
    assert_eq!(written, described);
    let node = parse(&value.to_string());
    let mut report = Found(Vec::new());
    let field = object_tree::Field::root(&node);
    let is_sound = check(&field, &AGENT.status, "report", &mut report);
    assert!(is_sound, "{:?}", report.0);
    let Shape::List {
        of: Shape::Object(fallback),
        ..
    } = &property(&AGENT.status, "fallbacks").unwrap().shape
    else {
        panic!()
    };
    let Shape::Word(words) = &property(fallback, "reason").unwrap().shape else {
        panic!()
    };
    let described: BTreeSet<&str> = words.iter().map(|word| word.name).collect();
    let known: BTreeSet<&str> = FallbackReason::ALL.map(FallbackReason::as_str).into();
    assert_eq!(described, known);
}

/// Compares what the controller writes with its description, field by field.
#[test]
fn a_full_status_and_a_full_map_have_the_described_fields() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use serde_json::json;

    let conditions = vec![Condition {
        last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        message: "the policy is valid".to_owned(),
        observed_generation: Some(3),
        reason: "Valid".to_owned(),
        status: "True".to_owned(),
        type_: "Accepted".to_owned(),
    }];
    let policy = PolicyStatus {
        conditions: conditions.clone(),
        last_transition: Some(LastTransition::default()),
        ..PolicyStatus::default()
    };
    let map = json!({
        "keys": ["topology.kubernetes.io/zone"],
        "nodes": { "n1": {
            "v": [""], "emptyLabels": ["topology.kubernetes.io/zone"],
            "ips": ["10.0.0.1"], "podCIDRs": ["10.244.1.0/24", "fd00:10:244:1::/64"],
        } },
    });
    let map: MapSpec = serde_json::from_value(map).unwrap();
    let mut all = vec![
        (json!(policy), &NAMESPACE_POLICY.status),
        (json!(policy), &CLUSTER_POLICY.status),
        (json!(map), &MAP.spec),
    ];
    let words = ["Ramping", "Active", "Expired", "Refused"];
    for phase in words.map(|word| serde_json::from_value(json!(word)).unwrap()) {
        let drain = DrainStatus {
            conditions: conditions.clone(),
            phase,
            ..DrainStatus::default()
        };
        all.push((json!(drain), &DRAIN.status));
    }
    for (value, object) in all {
        let (mut described, mut written) = (BTreeSet::new(), BTreeSet::new());
        paths_of("", object, &mut described);
        let mut named = value.clone();
        // The description has no Node names.
        if let Some(nodes) = named.get_mut("nodes") {
            *nodes = nodes["n1"].take();
        }
        paths_in("", &named, &mut written);
        assert_eq!(written, described);
        let node = parse(&value.to_string());
        let mut report = Found(Vec::new());
        let field = object_tree::Field::root(&node);
        assert!(
            check(&field, object, "object", &mut report),
            "{:?}",
            report.0
        );
    }
}

/// Compares what the controller writes about Pods with its description.
#[test]
fn a_full_pod_map_and_a_full_locator_have_the_described_fields_and_are_valid() {
    use serde_json::json;

    let map = PodMapSpec {
        pods: [("10.244.1.7".parse().unwrap(), "shop/cart-0".to_owned())].into(),
    };
    let locator = PodLocatorSpec {
        node_name: "n1".to_owned(),
        addresses: vec!["10.244.1.7".parse().unwrap(), "fd00::7".parse().unwrap()],
        node_labels: [("topology.kubernetes.io/zone".to_owned(), "a".to_owned())].into(),
    };
    for (value, object) in [(json!(map), &POD_MAP.spec), (json!(locator), &LOCATOR.spec)] {
        let written: BTreeSet<&String> = value.as_object().unwrap().keys().collect();
        let names: Vec<String> = object.properties().map(|one| one.name.to_owned()).collect();
        assert_eq!(written, names.iter().collect());
        let node = parse(&value.to_string());
        let mut report = Found(Vec::new());
        let field = object_tree::Field::root(&node);
        assert!(
            check(&field, object, "object", &mut report),
            "{:?}",
            report.0
        );
    }
}

/// Compares the words of each description with the enum of the engine.
#[test]
fn the_described_words_are_the_known_words() {
    use topology_core::model::{DrainScope, Enforcement, HardServices, OnLastDomain};
    use topology_core::policy::{
        AvoidMode, DemandKind, EmptyTier, Mode, OnNoMatch, Residual, Weighting,
    };

    fn described(object: &'static Object, path: &str) -> Vec<&'static str> {
        let (outer, list) = path.split_once("[].").unwrap_or((path, ""));
        match (&property(object, outer).unwrap().shape, list) {
            (Shape::Word(words), "") => words.iter().map(|word| word.name).collect(),
            (
                Shape::List {
                    of: Shape::Object(item),
                    ..
                },
                inner,
            ) => described(item, inner),
            (other, _) => panic!("{path} is {other:?}"),
        }
    }
    let of = |path: &str| described(&CLUSTER_POLICY.spec, path);
    assert_eq!(of("mode"), Mode::ALL.map(Mode::api_value));
    macro_rules! same {
        ($of:expr, $known:ident) => {{
            let known: Vec<&str> = $known::ALL.iter().map(|one| one.api_value()).collect();
            let (mut described, mut sorted) = ($of, known.clone());
            described.sort_unstable();
            sorted.sort_unstable();
            assert_eq!(described, sorted);
            for (word, value) in known.iter().zip($known::ALL) {
                assert_eq!(word.parse(), Ok(*value));
            }
            assert!("Odd".parse::<$known>().is_err());
        }};
    }
    same!(of("enforcement"), Enforcement);
    same!(of("weighting"), Weighting);
    same!(of("emptyTier"), EmptyTier);
    same!(of("guard.residual"), Residual);
    same!(of("guard.demand"), DemandKind);
    same!(of("onNoMatch"), OnNoMatch);
    same!(of("avoid[].mode"), AvoidMode);
    let of = |path: &str| described(&DRAIN.spec, path);
    same!(of("scope"), DrainScope);
    same!(of("onLastDomain"), OnLastDomain);
    same!(of("hardServices"), HardServices);
}
