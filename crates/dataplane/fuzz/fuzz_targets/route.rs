//! Arbitrary bytes as a message about routes and addresses, with its type first: no panic, and decoding is
//! deterministic.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/route
//! cargo +nightly fuzz run route fuzz/corpus/route fuzz/seeds/route -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dataplane::fuzzing::route(bytes);
});
