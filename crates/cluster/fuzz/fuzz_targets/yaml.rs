//! Any bytes as a cluster's YAML: no panic, no runaway, and the same answer twice.
//!
//! ```text
//! cd crates/cluster && mkdir -p fuzz/corpus/yaml
//! cargo +nightly fuzz run yaml fuzz/corpus/yaml ../../manifests/examples tests/cases -- -max_total_time=600
//! ```

#![no_main]

use cluster::source::{Options, ReadError, read_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = || read_text("fuzz.yaml", bytes, &Options::default());
    match (read(), read()) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first.warnings, second.warnings);
            assert_eq!(first.skipped, second.skipped);
            let services = |loaded: &cluster::source::Loaded| {
                loaded.snapshot.services().cloned().collect::<Vec<_>>()
            };
            assert_eq!(services(&first), services(&second));
            let policies = |loaded: &cluster::source::Loaded| {
                loaded.snapshot.policies().cloned().collect::<Vec<_>>()
            };
            assert_eq!(policies(&first), policies(&second));
            let drains = |loaded: &cluster::source::Loaded| {
                loaded.snapshot.drains().cloned().collect::<Vec<_>>()
            };
            assert_eq!(drains(&first), drains(&second));
            for warning in &first.warnings {
                assert!(!warning.message.is_empty());
                assert!(!warning.to_string().contains('\n'), "{warning}");
            }
        }
        (
            Err(ReadError::Unusable { warnings: first }),
            Err(ReadError::Unusable { warnings: second }),
        ) => {
            assert_eq!(first, second);
            assert!(!first.is_empty());
        }
        (first, second) => panic!("{first:?}, then {second:?}"),
    }
});
