//! Finds the source tree and the cache folder outside it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the folder of the workspace's `Cargo.toml`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("."))
}

/// Returns the folder for downloads and tools: `$XDG_CACHE_HOME/ipvs-topo`, else `~/.cache/ipvs-topo`.
pub fn cache() -> PathBuf {
    cache_in(&|name| std::env::var_os(name))
}

fn cache_in(variable: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    // The XDG specification treats an empty or relative path as unset.
    let folder = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("ipvs-topo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_the_cache_is_never_below_the_current_folder() {
        let cases: [(&[(&str, &str)], &str); 4] = [
            (&[("HOME", "/home/me")], "/home/me/.cache/ipvs-topo"),
            (
                &[("HOME", "/home/me"), ("XDG_CACHE_HOME", "/fast")],
                "/fast/ipvs-topo",
            ),
            (
                &[("HOME", "/home/me"), ("XDG_CACHE_HOME", "")],
                "/home/me/.cache/ipvs-topo",
            ),
            (&[("HOME", "")], "/tmp/ipvs-topo"),
        ];
        let temporary = std::env::temp_dir();
        for (variables, expected) in cases {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            let cache = cache_in(&|name| find(name).map(|(_, value)| value.into()));
            let expected = Path::new(expected);
            let expected = match expected.strip_prefix("/tmp") {
                Ok(rest) => temporary.join(rest),
                Err(_) => expected.to_owned(),
            };
            assert_eq!(cache, expected, "{variables:?}");
        }
    }
}
