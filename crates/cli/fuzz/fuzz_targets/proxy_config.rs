//! Any bytes as the file of `--config`: no panic, and two reads give the same arguments.
//!
//! ```text
//! cd crates/cli && mkdir -p fuzz/corpus/proxy_config
//! cargo +nightly fuzz run proxy_config fuzz/corpus/proxy_config src/args/proxy_config -- -max_total_time=600
//! ```

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use cli::fuzzing::proxy_config;

/// A file in memory, for this process only.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| format!("/dev/shm/ipvs-topo-fuzz-{}.yaml", std::process::id()).into());

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("/dev/shm takes a file");
    assert_eq!(proxy_config(&FILE), proxy_config(&FILE));
});
