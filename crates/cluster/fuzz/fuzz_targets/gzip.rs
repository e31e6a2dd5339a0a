//! Any bytes as a compressed stream of Services: no panic, no runaway, and the same events twice.
//!
//! ```text
//! cd crates/cluster && mkdir -p fuzz/corpus/gzip
//! cargo +nightly fuzz run gzip fuzz/corpus/gzip fuzz/seeds/gzip -- -max_total_time=600
//! ```

#![no_main]

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use cluster::api::NodeSource;
use libfuzzer_sys::fuzz_target;

mod follow;

use follow::NOTHING;

fuzz_target!(|bytes: &[u8]| {
    let first = received(bytes);
    assert_eq!(first, received(bytes));
});

fn received(bytes: &[u8]) -> Vec<String> {
    let body = bytes.to_vec();
    let router = Router::new().fallback(move |request: Request| {
        let compressed = request.uri().path().ends_with("/services");
        let (encoding, answer) = if compressed {
            ("gzip", body.clone())
        } else {
            ("identity", NOTHING.to_vec())
        };
        let headers = [
            (CONTENT_TYPE, "application/json"),
            (CONTENT_ENCODING, encoding),
        ];
        async move { (headers, answer) }
    });
    follow::received(router, NodeSource::Whole)
}
