//! Any text as what `nft -j list table` prints: no panic, and the same table is read twice.
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
