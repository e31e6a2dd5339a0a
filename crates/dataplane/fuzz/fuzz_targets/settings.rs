//! Arbitrary text as the record of changed settings: no panic, and a record of the parsed settings parses to the same.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/settings
//! cargo +nightly fuzz run settings fuzz/corpus/settings fuzz/seeds/settings -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    dataplane::fuzzing::settings(&text);
});
