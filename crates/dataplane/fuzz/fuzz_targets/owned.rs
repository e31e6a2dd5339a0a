//! Arbitrary text as the ownership record: no panic, and a record of the parsed keys parses to the same.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/owned
//! cargo +nightly fuzz run owned fuzz/corpus/owned fuzz/seeds/owned -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    dataplane::fuzzing::owned(&text);
});
