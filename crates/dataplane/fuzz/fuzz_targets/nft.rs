//! Arbitrary text as output of `nft -j list table`: no panic, and parsing is deterministic.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/nft
//! cargo +nightly fuzz run nft fuzz/corpus/nft fuzz/seeds/nft -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    dataplane::fuzzing::nft(&text);
});
