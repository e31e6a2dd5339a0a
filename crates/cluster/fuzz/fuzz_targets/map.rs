//! Any bytes as a stream of `TopologyMap` objects: no panic, no runaway, and the same events twice.
//!
//! ```text
//! cd crates/cluster && mkdir -p fuzz/corpus/map
//! cargo +nightly fuzz run map fuzz/corpus/map fuzz/seeds/map -- -max_total_time=600
//! ```

#![no_main]

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use cluster::api::NodeSource;
use libfuzzer_sys::fuzz_target;

mod follow;

use follow::NOTHING;

fuzz_target!(|bytes: &[u8]| {
    let first = received(bytes);
    assert_eq!(first, received(bytes));
});

/// The Nodes that the Node `n1` receives.
fn received(bytes: &[u8]) -> Vec<String> {
    let body = bytes.to_vec();
    let router = Router::new().fallback(move |request: Request| {
        let is_map = request.uri().path().ends_with("/topologymaps");
        let answer = if is_map {
            body.clone()
        } else {
            NOTHING.to_vec()
        };
        async move { ([(CONTENT_TYPE, "application/json")], answer) }
    });
    follow::received(router, NodeSource::Map { own: "n1".into() })
}
