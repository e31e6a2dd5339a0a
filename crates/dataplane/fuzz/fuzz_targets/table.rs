//! Arbitrary bytes as the attributes of a table, chain, rule or set, as the kernel lists them: no panic.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/table
//! cargo +nightly fuzz run table fuzz/corpus/table fuzz/seeds/table -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dataplane::fuzzing::table(bytes);
});
