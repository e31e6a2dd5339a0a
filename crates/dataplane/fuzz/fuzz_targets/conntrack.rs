//! Arbitrary bytes as a connection tracking entry: no panic, and a deletion identifies the entry that was read.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/conntrack
//! cargo +nightly fuzz run conntrack fuzz/corpus/conntrack fuzz/seeds/conntrack -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dataplane::fuzzing::conntrack(bytes);
});
