//! Tests that JSON and Protobuf answers of a real API server (Kubernetes 1.36.3 and 1.37.2) convert
//! to the same objects. `crates/kube-io/src/decode/captured/capture.sh` wrote the files.

use kube_io::decode::{Encoding, Framer, TypeMeta, WatchEvent, WatchEventType};
use object_tree::Node;
use proptest::prelude::*;

use super::{Context, object};

/// One answer in both encodings.
macro_rules! captured {
    ($name:literal) => {
        [
            (
                Encoding::Json,
                &include_bytes!(concat!(
                    "../../../kube-io/src/decode/captured/",
                    $name,
                    ".json"
                ))[..],
            ),
            (
                Encoding::Protobuf,
                &include_bytes!(concat!(
                    "../../../kube-io/src/decode/captured/",
                    $name,
                    ".protobuf"
                ))[..],
            ),
        ]
    };
}

type Captured = [(Encoding, &'static [u8]); 2];

const SERVICE: Option<TypeMeta> = Some(type_meta("Service", "v1"));

const fn type_meta(kind: &'static str, api_version: &'static str) -> TypeMeta {
    TypeMeta { kind, api_version }
}

/// The converted object, with its warnings.
fn converted(node: &Node) -> String {
    format!("{:#?}", object(node, &"".into(), &mut Context::default()))
}

/// Compares a page in both encodings. Returns the number of objects.
fn assert_same_page(captured: Captured, type_meta: Option<TypeMeta>) -> usize {
    let [of_json, of_protobuf] = captured.map(|(form, bytes)| {
        let mut found = Vec::new();
        let page = form.list(bytes, type_meta, &mut |object: Node| {
            found.push(converted(&object));
        });
        (page.unwrap(), found)
    });
    assert!(!of_json.0.resource_version.is_empty());
    assert_eq!(of_json.0, of_protobuf.0);
    assert_eq!(of_json.1, of_protobuf.1);
    of_json.1.len()
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
fn every_kind_is_the_same_in_both_forms() {
    let slice = Some(type_meta("EndpointSlice", "discovery.k8s.io/v1"));
    let cidr = Some(type_meta("ServiceCIDR", "networking.k8s.io/v1"));
    assert_eq!(assert_same_page(captured!("services"), SERVICE), 2);
    assert_eq!(assert_same_page(captured!("slices"), slice), 3);
    assert_eq!(
        assert_same_page(captured!("nodes"), Some(type_meta("Node", "v1"))),
        3
    );
    assert_eq!(assert_same_page(captured!("cidrs"), cidr), 2);
    assert!(assert_same_page(captured!("namespaces"), Some(type_meta("Namespace", "v1"))) > 3);
}

#[test]
fn a_stream_converts_to_the_same_in_both_forms() {
    let [of_json, of_protobuf] = captured!("stream").map(|(form, bytes)| events(form, bytes));
    assert_eq!(of_json.len(), of_protobuf.len());
    let mut objects = 0;
    for (json, protobuf) in of_json.iter().zip(&of_protobuf) {
        if matches!(
            protobuf.event_type,
            WatchEventType::Applied | WatchEventType::Deleted
        ) {
            assert_eq!(converted(&json.object), converted(&protobuf.object));
            objects += 1;
        }
    }
    assert_eq!(objects, 3);
}

proptest! {
    #[test]
    fn no_change_makes_it_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let [_, (form, page)] = captured!("slices");
        let (mut page, length) = (page.to_vec(), page.len());
        page[at.index(length)] = byte;
        let slice = Some(type_meta("EndpointSlice", "discovery.k8s.io/v1"));
        let _either = form.list(&page, slice, &mut |object: Node| drop(converted(&object)));
    }
}
