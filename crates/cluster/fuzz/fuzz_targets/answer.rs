//! Any bytes as the answer of an API server, as a page or as a stream: no panic, no runaway, and the same events twice.
//!
//! ```text
//! cd crates/cluster && mkdir -p fuzz/corpus/answer
//! cargo +nightly fuzz run answer fuzz/corpus/answer fuzz/seeds/answer -- -max_total_time=600
//! ```

#![no_main]

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use cluster::api::NodeSource;
use libfuzzer_sys::fuzz_target;

mod follow;

use follow::NOTHING;

/// The collections, one of which the bytes are the answer for.
const COLLECTIONS: [&str; 8] = [
    "/nodes",
    "/services",
    "/endpointslices",
    "/servicecidrs",
    "/topologypolicies",
    "/clustertopologypolicies",
    "/topologydrains",
    "/namespaces",
];

/// A policy because of which Namespaces are read.
const POLICY: &[u8] = br#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"8"},"spec":{"namespaceSelector":{"matchLabels":{"a":"b"}},"mode":"None"}}}
"#;

fuzz_target!(|bytes: &[u8]| {
    let Some((how, body)) = bytes.split_first() else {
        return;
    };
    let first = received(*how, body);
    assert_eq!(first, received(*how, body));
});

/// The events of a cluster whose server answers so; the lower bits of `how` say for which collection, the next
/// whether as a page, the sixth whether as protobuf, and the seventh whether as what is wrong.
fn received(how: u8, body: &[u8]) -> Vec<String> {
    follow::received(server(how, body.to_vec()), nodes(how))
}

/// Where Nodes are read: another bit says whether all their labels are kept.
fn nodes(how: u8) -> NodeSource {
    if how & 16 == 0 {
        NodeSource::Whole
    } else {
        NodeSource::Nodes { own: "n1".into() }
    }
}

fn server(how: u8, body: Vec<u8>) -> Router {
    let chosen = COLLECTIONS[usize::from(how % 8)];
    let pages = how & 8 != 0;
    let code = if how & 64 == 0 {
        StatusCode::OK
    } else {
        StatusCode::GONE
    };
    let form = if how & 32 == 0 {
        "application/json"
    } else {
        "application/vnd.kubernetes.protobuf"
    };
    Router::new().fallback(move |request: Request| {
        let streams = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let json = "application/json";
        let path = request.uri().path();
        let (code, form, answer) = match (path.ends_with(chosen), streams) {
            (true, true) if pages => (StatusCode::UNPROCESSABLE_ENTITY, json, Vec::new()),
            (true, _) => (code, form, body.clone()),
            (false, true) if path.ends_with("/clustertopologypolicies") => {
                (StatusCode::OK, json, [POLICY, NOTHING].concat())
            }
            (false, true) => (StatusCode::OK, json, NOTHING.to_vec()),
            (false, false) => (StatusCode::OK, json, br#"{"items": []}"#.to_vec()),
        };
        let answer = (code, [(CONTENT_TYPE, form)], answer);
        async move { answer }
    })
}
