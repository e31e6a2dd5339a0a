//! Pages and streams of a real API server (Kubernetes 1.36.3), in both forms: `captured/capture.sh` wrote them.

use super::*;
use crate::convert::{self, Context};

/// One answer in both forms.
macro_rules! captured {
    ($name:literal) => {
        [
            (
                Form::Json,
                &include_bytes!(concat!("../captured/", $name, ".json"))[..],
            ),
            (
                Form::Protobuf,
                &include_bytes!(concat!("../captured/", $name, ".protobuf"))[..],
            ),
        ]
    };
}

type Captured = [(Form, &'static [u8]); 2];

fn identity(kind: &'static str, api_version: &'static str) -> Identity {
    Identity { kind, api_version }
}

/// What conversion makes of an object, warnings included.
fn converted(object: &Node) -> String {
    format!(
        "{:#?}",
        convert::object(object, &"".into(), &mut Context::default())
    )
}

/// What both forms of a page amount to; how many objects there are.
fn assert_same_page(captured: Captured, identity: Identity) -> usize {
    let [of_json, of_protobuf] = captured.map(|(form, bytes)| {
        let mut found = Vec::new();
        let page = form.list(bytes, identity, &mut |object| {
            found.push(converted(&object));
        });
        (page.unwrap(), found)
    });
    assert!(!of_json.0.resource_version.is_empty());
    assert_eq!(of_json.0, of_protobuf.0);
    assert_eq!(of_json.1, of_protobuf.1);
    of_json.1.len()
}

/// The events in a stream.
fn events(form: Form, stream: &[u8]) -> Vec<Event> {
    let mut parts = Parts::of(form);
    parts.push(stream).unwrap();
    let parts = std::iter::from_fn(|| parts.next());
    parts
        .map(|part| form.event(&part, SERVICE).unwrap())
        .collect()
}

#[test]
fn every_kind_is_the_same_in_both_forms() {
    let slice = identity("EndpointSlice", "discovery.k8s.io/v1");
    let cidr = identity("ServiceCIDR", "networking.k8s.io/v1");
    assert_eq!(assert_same_page(captured!("services"), SERVICE), 2);
    assert_eq!(assert_same_page(captured!("slices"), slice), 3);
    assert_eq!(
        assert_same_page(captured!("nodes"), identity("Node", "v1")),
        2
    );
    assert_eq!(assert_same_page(captured!("cidrs"), cidr), 2);
    assert!(assert_same_page(captured!("namespaces"), identity("Namespace", "v1")) > 3);
}

#[test]
fn a_stream_is_the_same_in_both_forms() {
    let [of_json, of_protobuf] = captured!("stream").map(|(form, bytes)| events(form, bytes));
    let happened: Vec<_> = of_protobuf.iter().map(|event| event.happening).collect();
    assert_eq!(
        happened,
        [
            Happening::Exists,
            Happening::Bookmark { listed: true },
            Happening::Exists,
            Happening::Gone,
            Happening::Bookmark { listed: false },
        ]
    );
    for (json, protobuf) in of_json.iter().zip(&of_protobuf) {
        assert_eq!(json.happening, protobuf.happening);
        if matches!(protobuf.happening, Happening::Exists | Happening::Gone) {
            assert_eq!(json.version(), protobuf.version());
            assert_eq!(converted(&json.object), converted(&protobuf.object));
        }
    }
}

/// A field of a message, as it stands in its bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 128);
    let length = u8::try_from(bytes.len()).unwrap();
    [&[number << 3 | 2, length], bytes].concat()
}

#[test]
fn a_status_is_the_same_in_both_forms_and_may_end_a_stream() {
    let [json, protobuf] = captured!("status").map(|(form, bytes)| form.object(bytes).unwrap());
    for name in ["code", "reason", "message"] {
        let text = json.get(name).and_then(Node::text);
        assert!(text.is_some());
        assert_eq!(text, protobuf.get(name).and_then(Node::text));
    }
    let [_, (form, status)] = captured!("status");
    let event = [field(1, b"ERROR"), field(2, &field(1, status))].concat();
    let event = form.event(&event, SERVICE).unwrap();
    assert_eq!(event.happening, Happening::Error);
    assert_eq!(event.object.get("reason").unwrap().text(), Some("NotFound"));
}

#[test]
fn what_is_cut_off_is_refused_and_never_taken_for_less() {
    let [_, (form, page)] = captured!("slices");
    let slice = identity("EndpointSlice", "discovery.k8s.io/v1");
    // Two empty texts that nobody reads end the envelope.
    for length in 0..page.len() - 4 {
        assert!(
            form.list(&page[..length], slice, &mut |_| {}).is_err(),
            "{length}"
        );
    }
}

#[test]
fn what_nobody_asked_for_is_named() {
    let pod = [b"k8s\0", &*field(1, &field(2, b"Pod")), &field(2, b"")].concat();
    let refused = |bytes: &[u8]| Form::Protobuf.object(bytes).unwrap_err().to_string();
    assert_eq!(refused(&pod), "protobuf: a `Pod`, which nobody asked for");
    assert_eq!(
        refused(b"<html>"),
        "protobuf: an object without its envelope"
    );
}

proptest! {
    /// A byte that is another one is found, or makes another object; it never makes a panic.
    #[test]
    fn no_change_makes_it_panic(at in 0_usize..2804, byte in any::<u8>()) {
        let [_, (form, page)] = captured!("slices");
        let mut page = page.to_vec();
        page[at] = byte;
        let slice = identity("EndpointSlice", "discovery.k8s.io/v1");
        let _either = form.list(&page, slice, &mut |object| drop(converted(&object)));
    }
}
