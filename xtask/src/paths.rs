//! Where things are: the source tree, and the cache outside it.

use std::path::{Path, PathBuf};

/// The root of the source tree (the folder of the workspace's `Cargo.toml`).
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Downloads and tools that survive `cargo clean`: `$XDG_CACHE_HOME/ipvs-topo`, else `~/.cache/ipvs-topo`.
pub(crate) fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .unwrap_or_else(std::env::temp_dir)
        .join("ipvs-topo")
}
