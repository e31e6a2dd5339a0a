//! Checks that JSON gives the same tree as YAML, and protobuf the same as JSON.

mod captured;

use proptest::prelude::*;
use serde_json::json;

use super::json::Tree;
use super::*;
use object_tree::{self as yaml, Value};

const SERVICE: Option<TypeMeta> = Some(TypeMeta {
    kind: "Service",
    api_version: "v1",
});

/// Prints the tree without line numbers.
fn shape(node: &Node) -> String {
    match node.value() {
        Value::Scalar { text, plain: true } => format!("plain {text}"),
        Value::Scalar { text, plain: false } => format!("text {text:?}"),
        Value::List(items) => format!(
            "[{}]",
            items.iter().map(shape).collect::<Vec<_>>().join(", ")
        ),
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{key:?}: {}", shape(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Shared(_) => unreachable!("value() follows aliases"),
    }
}

fn of_json(text: &str) -> String {
    let mut found = Vec::new();
    let page = format!("{{\"items\": [{text}]}}");
    json::list(page.as_bytes(), Tree::OBJECT, &mut |node| {
        found.push(shape(&node));
    })
    .unwrap();
    found.join("\n")
}

fn of_yaml(text: &str) -> String {
    let mut found = Vec::new();
    yaml::read(text.as_bytes(), |node| found.push(shape(&node))).unwrap();
    found.join("\n")
}

/// Any JSON that servers write. No floating point: YAML keeps the original text of a number.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        "[ -~äß\\n\\t\"\\\\]{0,12}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|items| json!(items)),
            prop::collection::hash_map("[a-zA-Z./]{1,8}", inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn json_and_yaml_give_the_same_tree(spec in value()) {
        let text = json!({"kind": "Service", "metadata": {"name": "a"}, "spec": spec}).to_string();
        prop_assert_eq!(of_json(&text), of_yaml(&text));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for form in [Encoding::Json, Encoding::Protobuf] {
            let mut count = 0;
            prop_assert!(form.list(&bytes, SERVICE, &mut |_: Node| count += 1).is_err());
            prop_assert_eq!(count, 0);
            prop_assert!(form.event::<Node>(&bytes, SERVICE).is_err());
        }
    }
}

#[test]
fn a_page_has_its_version_and_continue_token() {
    let text = br#"{"kind":"ServiceList","metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},
        "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
    let mut found = Vec::new();
    let page = Encoding::Json.list(text, SERVICE, &mut |node: Node| {
        found.push(node.get("kind").unwrap().text().unwrap().to_owned());
    });
    let expected = Page {
        resource_version: "7".to_owned(),
        r#continue: "abc".to_owned(),
    };
    assert_eq!(page.unwrap(), expected);
    assert_eq!(found, ["Service", "Service"]);
    let empty = json::list(
        br#"{"metadata":{"resourceVersion":"7"},"items":null}"#,
        Tree::OBJECT,
        &mut |_| {},
    );
    assert_eq!(empty.unwrap().resource_version, "7");
}

#[test]
fn other_content_than_a_page_is_refused() {
    for text in [
        "",
        "[]",
        "{}",
        "{\"items\": 5}",
        "{\"items\": []} x",
        "{\"items\": [}",
    ] {
        assert!(
            json::list(text.as_bytes(), Tree::OBJECT, &mut |_| {}).is_err(),
            "{text}"
        );
    }
    let deep = format!("{{\"items\": [{}{}]}}", "[".repeat(100), "]".repeat(100));
    let error = json::list(deep.as_bytes(), Tree::OBJECT, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("nested more than"), "{error}");
}

#[test]
fn an_event_has_its_type_and_version() {
    let read = |kind: &str, more: &str| {
        let text = format!(
            r#"{{"type":"{kind}","object":{{"kind":"Service","metadata":{{"name":"a","resourceVersion":"9"{more}}}}}}}"#
        );
        Encoding::Json
            .event::<Node>(text.as_bytes(), SERVICE)
            .unwrap()
    };
    assert_eq!(read("ADDED", "").event_type, WatchEventType::Applied);
    assert_eq!(read("MODIFIED", "").version(), Some("9".into()));
    assert_eq!(read("DELETED", "").event_type, WatchEventType::Deleted);
    assert_eq!(
        read("BOOKMARK", "").event_type,
        WatchEventType::Bookmark { listed: false }
    );
    let end = read(
        "BOOKMARK",
        r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
    );
    assert_eq!(end.event_type, WatchEventType::Bookmark { listed: true });
    for wrong in [r#"{"type":"OTHER","object":{}}"#, r#"{"type":"ADDED"}"#] {
        assert!(
            Encoding::Json
                .event::<Node>(wrong.as_bytes(), SERVICE)
                .is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn large_unused_fields_are_skipped_and_labels_of_that_name_are_not() {
    let text = r#"{"metadata":{"managedFields":[{"a":1}],"labels":{"managedFields":"x","images":"y"}},
        "status":{"images":[{"names":["a"]}],"allocatable":{"images":"z"}}}"#;
    assert_eq!(
        of_json(text),
        r#"{"metadata": {"labels": {"managedFields": text "x", "images": text "y"}}, "status": {"allocatable": {"images": text "z"}}}"#
    );
}
