//! Arbitrary text as the record of deadlines: no panic, and a record of the parsed deadlines parses to the same.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/draining
//! cargo +nightly fuzz run draining fuzz/corpus/draining fuzz/seeds/draining -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    dataplane::fuzzing::draining(&text);
});
