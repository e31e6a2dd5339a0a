//! `cargo xtask codegen`: writes the files that follow from the code.
//!
//! | files | source |
//! | --- | --- |
//! | `manifests/crds`, `manifests/admission`, `docs/policies.md` | the descriptions of the custom resources: the example `generated` of the crate `crd`, so that this program builds without it |
//! | `docs/commands.md` | `--help` of every command |
//! | `docs/metrics.md` | the metrics that each program exposes |
//! | `docs/kube-proxy-settings.md` | the table of kube-proxy's settings: the example `kube_proxy_settings` of the crate `cli` |

mod commands;
mod example;
mod metrics;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};

use testbed::paths;

/// What kube-proxy's settings do.
const SETTINGS: &str = "docs/kube-proxy-settings.md";
const MANIFESTS: &str = "manifests/";
const DOCUMENTS: &str = "docs/";
/// The folders of `manifests` in which every file is generated.
const FOLDERS: [&str; 2] = ["crds", "admission"];

/// Options of `cargo xtask codegen`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file differs from the generated one.
    #[arg(long)]
    check: bool,
}

/// Writes the files, or checks them.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let drift = drift()?;
    for (path, text) in &drift {
        if args.check {
            anstream::println!("{path}: {}", remedy(text.is_some()));
            continue;
        }
        let file = paths::root().join(path);
        if let Some(text) = text {
            write(&file, text).with_context(|| format!("writing {path}"))?;
            anstream::println!("codegen: wrote {path}");
        } else {
            fs::remove_file(&file).with_context(|| format!("removing {path}"))?;
            anstream::println!("codegen: removed {path}");
        }
    }
    if drift.is_empty() {
        anstream::println!("codegen: every generated file is up to date");
    }
    Ok(if args.check && !drift.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn write(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}

/// The message for a file that differs from the generated one, or that is no longer generated.
pub(crate) fn remedy(is_wanted: bool) -> &'static str {
    if is_wanted {
        "not what its source says (crates/crd/src, `--help`, the metrics of a program, or the table of settings); run `cargo xtask codegen`"
    } else {
        "nothing generates this file any more; run `cargo xtask codegen`, which removes it"
    }
}

/// The files that differ from the generated ones, with their new content; `None` for files to
/// delete.
pub(crate) fn drift() -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let mut wanted = wanted(&example::output("generated")?)?;
    wanted.insert(SETTINGS.to_owned(), example::output("kube_proxy_settings")?);
    wanted.insert(commands::DOCUMENT.to_owned(), commands::page()?);
    wanted.insert(metrics::DOCUMENT.to_owned(), metrics::page()?);
    let mut drift: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (path, text) in &wanted {
        if fs::read_to_string(paths::root().join(path)).ok().as_ref() != Some(text) {
            drift.insert(path.clone(), Some(text.clone()));
        }
    }
    for folder in FOLDERS {
        for path in files_in(&format!("{MANIFESTS}{folder}"))? {
            if !wanted.contains_key(&path) {
                drift.insert(path, None);
            }
        }
    }
    Ok(drift)
}

fn files_in(folder: &str) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(paths::root().join(folder));
    let mut paths = Vec::new();
    for entry in entries.into_iter().flatten() {
        paths.push(format!("{folder}/{}", entry?.file_name().to_string_lossy()));
    }
    Ok(paths)
}

/// Every file that `output` has, by its path.
fn wanted(output: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for part in output.split(">>> ").skip(1) {
        let (head, text) = part.split_once('\n').context("a text without a place")?;
        let (folder, name) = match head.split_once(' ') {
            Some(("manifest", name)) => (MANIFESTS, name),
            Some(("document", name)) => (DOCUMENTS, name),
            _ => bail!("`{head}` is not a place"),
        };
        files.insert(format!("{folder}{name}"), text.to_owned());
    }
    ensure!(!files.is_empty(), "nothing was generated");
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_the_path_that_its_head_names() {
        let output = ">>> manifest crds/a.yaml\nkind: A\n>>> document a.md\n| a |\n";
        let files = wanted(output).unwrap();
        assert_eq!(files["manifests/crds/a.yaml"], "kind: A\n");
        assert_eq!(files["docs/a.md"], "| a |\n");
        assert!(wanted(">>> elsewhere x\n").is_err());
        assert!(wanted("").is_err());
    }
}
