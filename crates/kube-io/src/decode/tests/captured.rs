//! Answers of a real API server (Kubernetes 1.36.3 and 1.37.2) in both encodings, from
//! `captured/capture.sh`.

use std::collections::BTreeSet;

use super::protobuf::kinds::{self, Cardinality, Message, Type};
use super::*;

/// One answer in both encodings.
macro_rules! captured {
    ($name:literal) => {
        [
            (
                Encoding::Json,
                &include_bytes!(concat!("../captured/", $name, ".json"))[..],
            ),
            (
                Encoding::Protobuf,
                &include_bytes!(concat!("../captured/", $name, ".protobuf"))[..],
            ),
        ]
    };
}

fn type_meta(kind: &'static str, api_version: &'static str) -> TypeMeta {
    TypeMeta { kind, api_version }
}

fn events(form: Encoding, stream: &[u8]) -> Vec<WatchEvent> {
    let mut parts = Framer::of(form);
    parts.push(stream).unwrap();
    let parts = std::iter::from_fn(|| parts.next_part());
    parts
        .map(|part| form.event(&part, SERVICE).unwrap())
        .collect()
}

#[test]
fn a_stream_is_the_same_in_both_encodings() {
    let [of_json, of_protobuf] = captured!("stream").map(|(form, bytes)| events(form, bytes));
    let happened: Vec<_> = of_protobuf.iter().map(|event| event.event_type).collect();
    let (happened, bookmarks) = happened.split_at(4);
    assert_eq!(
        happened,
        [
            WatchEventType::Applied,
            WatchEventType::Bookmark { listed: true },
            WatchEventType::Applied,
            WatchEventType::Deleted,
        ]
    );
    let later = WatchEventType::Bookmark { listed: false };
    assert!(bookmarks.contains(&later) && bookmarks.iter().all(|other| *other == later));
    assert_eq!(of_json.len(), of_protobuf.len());
    for (json, protobuf) in of_json.iter().zip(&of_protobuf) {
        assert_eq!(json.event_type, protobuf.event_type);
        if matches!(
            protobuf.event_type,
            WatchEventType::Applied | WatchEventType::Deleted
        ) {
            assert_eq!(json.version(), protobuf.version());
        }
    }
}

/// Encodes a field of a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 128);
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

#[test]
fn a_status_is_the_same_in_both_encodings_and_may_end_a_stream() {
    let [json, protobuf] = captured!("status").map(|(form, bytes)| form.object(bytes).unwrap());
    for name in ["code", "reason", "message"] {
        let text = json.get(name).and_then(Node::text);
        assert!(text.is_some());
        assert_eq!(text, protobuf.get(name).and_then(Node::text));
    }
    let [_, (form, status)] = captured!("status");
    let event = [field(1, b"ERROR"), field(2, &field(1, status))].concat();
    let event = form.event::<Node>(&event, SERVICE).unwrap();
    assert_eq!(event.event_type, WatchEventType::Error);
    assert_eq!(event.object.get("reason").unwrap().text(), Some("NotFound"));
}

/// The paths of all fields in a tree: `spec.ports.port`.
fn paths(node: &Node, path: &str, found: &mut BTreeSet<String>) {
    found.insert(path.to_owned());
    for item in node.list().unwrap_or_default() {
        paths(item, path, found);
    }
    for (key, value) in node.map().unwrap_or_default() {
        paths(value, &format!("{path}.{key}"), found);
    }
}

/// The paths of all rows of a table.
fn rows(table: Message, path: &str, found: &mut BTreeSet<String>) {
    for row in table {
        let path = format!("{path}.{}", row.name);
        let (Cardinality::One(of) | Cardinality::Many(of) | Cardinality::Map(of)) = row.cardinality;
        if let Type::Message(table) = of {
            rows(table, &path, found);
        }
        found.insert(path);
    }
}

#[test]
fn every_row_of_the_tables_is_in_the_captured_answers() {
    let (mut expected, mut found) = (BTreeSet::new(), BTreeSet::new());
    let pages = [
        ("Service", captured!("services")),
        ("EndpointSlice", captured!("slices")),
        ("Node", captured!("nodes")),
        ("ServiceCIDR", captured!("cidrs")),
        ("PartialObjectMetadata", captured!("namespaces")),
    ];
    for (kind, [_, (form, page)]) in pages {
        rows(kinds::of(kind).unwrap(), kind, &mut expected);
        let mut sink = |object: Node| paths(&object, kind, &mut found);
        form.list(page, Some(type_meta(kind, "")), &mut sink)
            .unwrap();
    }
    rows(kinds::of("Status").unwrap(), "Status", &mut expected);
    let [_, (form, status)] = captured!("status");
    paths(&form.object(status).unwrap(), "Status", &mut found);
    // All kinds have the same metadata. The server drops the old topology of new objects.
    let is_elsewhere = |path: &&String| {
        found.iter().any(|known| {
            let metadata = path.split_once(".metadata");
            metadata.is_some_and(|(_, field)| known.ends_with(&format!(".metadata{field}")))
        })
    };
    let missing: Vec<_> = expected
        .difference(&found)
        .filter(|path| !is_elsewhere(path))
        .collect();
    let encoded_below = [
        "EndpointSlice.endpoints.deprecatedTopology",
        "EndpointSlice.endpoints.hostname",
    ];
    assert_eq!(missing, encoded_below);
}

/// An object of this kind with this content.
fn enveloped(kind: &[u8], content: &[u8]) -> Node {
    let type_meta = field(2, kind);
    let object = [b"k8s\0", &*field(1, &type_meta), &field(2, content)].concat();
    Encoding::Protobuf.object(&object).unwrap()
}

#[test]
fn the_fields_that_only_dns_uses_are_read() {
    let endpoint = [field(1, b"10.244.1.2"), field(3, b"cart-0")].concat();
    let slice = enveloped(b"EndpointSlice", &field(2, &endpoint));
    let endpoints = slice.get("endpoints").and_then(Node::list).unwrap();
    assert_eq!(endpoints[0].get("hostname").unwrap().text(), Some("cart-0"));
    // Field 13 is a flag: no length, and the value 1.
    let spec = [field(10, b"example.com"), vec![13 << 3, 1]].concat();
    let service = enveloped(b"Service", &field(2, &spec));
    let spec = service.get("spec").unwrap();
    let text = |name| spec.get(name).and_then(Node::text);
    assert_eq!(text("externalName"), Some("example.com"));
    assert_eq!(text("publishNotReadyAddresses"), Some("true"));
}

#[test]
fn the_old_topology_of_an_endpoint_is_read() {
    let entry = [field(1, b"kubernetes.io/hostname"), field(2, b"n7")].concat();
    let endpoint = [field(1, b"10.244.1.2"), field(5, &entry)].concat();
    let object = enveloped(b"EndpointSlice", &field(2, &endpoint));
    let endpoints = object.get("endpoints").and_then(Node::list).unwrap();
    let topology = endpoints[0].get("deprecatedTopology").unwrap();
    assert_eq!(
        topology.get("kubernetes.io/hostname").unwrap().text(),
        Some("n7")
    );
}

#[test]
fn the_encoding_follows_the_content_type() {
    let protobuf = "application/vnd.kubernetes.protobuf";
    assert_eq!(Encoding::of(protobuf), Encoding::Protobuf);
    assert_eq!(
        Encoding::of(&format!("{protobuf};stream=watch")),
        Encoding::Protobuf
    );
    for other in ["application/json", "text/plain; charset=utf-8", ""] {
        assert_eq!(Encoding::of(other), Encoding::Json, "{other}");
    }
}

#[test]
fn a_truncated_page_is_refused() {
    let [_, (form, page)] = captured!("slices");
    let slice = Some(type_meta("EndpointSlice", "discovery.k8s.io/v1"));
    // The envelope ends with two empty texts that the decoder does not read.
    for length in 0..page.len() - 4 {
        assert!(
            form.list(&page[..length], slice, &mut |_: Node| {})
                .is_err(),
            "{length}"
        );
    }
}

#[test]
fn the_error_names_an_unexpected_kind() {
    let pod = [b"k8s\0", &*field(1, &field(2, b"Pod")), &field(2, b"")].concat();
    let refused = |bytes: &[u8]| Encoding::Protobuf.object(bytes).unwrap_err().to_string();
    assert_eq!(refused(&pod), "protobuf: unexpected kind `Pod`");
    assert_eq!(
        refused(b"<html>"),
        "protobuf: an object without its envelope"
    );
}

proptest! {
    /// A changed byte causes an error or another object, but never a panic.
    #[test]
    fn no_change_causes_a_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let [_, (form, page)] = captured!("slices");
        let (mut page, length) = (page.to_vec(), page.len());
        page[at.index(length)] = byte;
        let slice = Some(type_meta("EndpointSlice", "discovery.k8s.io/v1"));
        let _either = form.list(&page, slice, &mut |object: Node| drop(object));
    }
}
