//! Arbitrary text as the record of firewall marks: no panic, and a record of the parsed marks parses to the same.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/marks
//! cargo +nightly fuzz run marks fuzz/corpus/marks fuzz/seeds/marks -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    dataplane::fuzzing::marks(&text);
});
