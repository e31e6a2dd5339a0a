//! Arbitrary bytes as elements of a set, as the kernel lists them: no panic, and they have one order.
//!
//! ```text
//! cd crates/dataplane && mkdir -p fuzz/corpus/elements
//! cargo +nightly fuzz run elements fuzz/corpus/elements fuzz/seeds/elements -- -max_total_time=600
//! ```

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dataplane::fuzzing::elements(bytes);
});
