//! Copies the files of an example, with and without some of its endpoints.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The beginning of an endpoint in the example: the indent of the list, then its only address.
const ENDPOINT: &str = "  - addresses: [";

/// A copy of an example, which the agent watches.
pub(super) struct ExampleCluster {
    /// The folder of the example itself, which never changes.
    original: PathBuf,
    /// The folder of the copies.
    home: PathBuf,
    /// Addresses that have left.
    gone: Vec<SocketAddr>,
}

impl ExampleCluster {
    pub(super) fn copy(original: &Path) -> anyhow::Result<Self> {
        let shop = Self {
            original: original.to_owned(),
            home: std::env::temp_dir().join("demo"),
            gone: Vec::new(),
        };
        shop.write(&shop.folder())?;
        Ok(shop)
    }

    /// The folder that the agent watches.
    pub(super) fn folder(&self) -> PathBuf {
        self.home.join("cluster")
    }

    /// Writes the cluster without the endpoints `leaving` to a separate folder.
    pub(super) fn without(&mut self, leaving: &[SocketAddr]) -> anyhow::Result<PathBuf> {
        self.gone.extend(leaving);
        self.next()
    }

    /// Writes the whole cluster to a separate folder.
    pub(super) fn whole(&mut self) -> anyhow::Result<PathBuf> {
        self.gone.clear();
        self.next()
    }

    /// Replaces the changed files in the watched folder by those of `next`, each with one rename.
    pub(super) fn install(&self, next: &Path) -> anyhow::Result<()> {
        for name in names(next)? {
            let (from, to) = (next.join(&name), self.folder().join(&name));
            if fs::read(&from)? != fs::read(&to)? {
                fs::rename(from, to)?;
            }
        }
        Ok(())
    }

    fn next(&self) -> anyhow::Result<PathBuf> {
        let folder = self.home.join("next");
        self.write(&folder)?;
        Ok(folder)
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        for name in names(&self.original)? {
            let text = fs::read_to_string(self.original.join(&name))?;
            let text = self
                .gone
                .iter()
                .try_fold(text, |text, address| remove(&text, *address))?;
            fs::write(folder.join(&name), text)?;
        }
        Ok(())
    }
}

fn names(folder: &Path) -> anyhow::Result<Vec<std::ffi::OsString>> {
    fs::read_dir(folder)
        .with_context(|| format!("cannot read the example {}", folder.display()))?
        .map(|entry| Ok(entry?.file_name()))
        .collect()
}

/// Returns `text` without the endpoint at `address`.
fn remove(text: &str, address: SocketAddr) -> anyhow::Result<String> {
    let first = format!("{ENDPOINT}{}]", address.ip());
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        // The further lines of an endpoint are indented deeper than its dash.
        inside = line == first || (inside && line.starts_with("    "));
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if kept.contains(&address.ip().to_string()) {
        bail!("the endpoint {} is not written as `{first}`", address.ip());
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: &str = include_str!("../../../../manifests/examples/shop/endpointslice.yaml");

    #[test]
    fn an_endpoint_leaves_the_example_and_the_others_stay() {
        let left = remove(SLICE, "10.244.2.2:8080".parse().unwrap()).unwrap();
        let count = |text: &str| text.matches(ENDPOINT).count();
        assert_eq!(count(&left), count(SLICE) - 1);
        assert_eq!(left.matches("nodeName:").count(), count(&left));
        assert!(!left.contains("10.244.2.2]"));
    }

    #[test]
    fn an_endpoint_in_another_style_is_an_error_not_a_change_of_nothing() {
        let other = "  - addresses:\n      - 10.244.2.2\n";
        assert!(remove(other, "10.244.2.2:8080".parse().unwrap()).is_err());
    }
}
