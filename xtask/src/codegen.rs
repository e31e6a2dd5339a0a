//! `cargo xtask codegen`: writes what follows from the descriptions of the custom resources.
//!
//! `docs/commands.md` is what every command prints with `--help`. Whole files in `manifests/crds` and `manifests/admission`, and the parts of `docs/topology.md` between
//! `<!-- generated: NAME -->` and `<!-- end generated -->`. The texts come from the example `generated` of the crate
//! `crd`, so that this program builds without it.

mod commands;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail, ensure};

use testbed::{cargo, paths};

/// Where whole files belong.
const MANIFESTS: &str = "manifests/";
/// The folders there in which nothing else stands.
const FOLDERS: [&str; 2] = ["crds", "admission"];
/// The document with the sections.
const DOCUMENT: &str = "docs/topology.md";
/// What ends a section.
const END: &str = "<!-- end generated -->";

/// Options of `cargo xtask codegen`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail if a file is not as it would be written.
    #[arg(long)]
    check: bool,
}

/// Writes or checks.
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
        anstream::println!("codegen: every generated text is as the descriptions say");
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

/// What is wrong with a file that is not as it would be written, or that nothing writes any more.
pub(crate) fn remedy(is_wanted: bool) -> &'static str {
    if is_wanted {
        "not what its source says (crates/crd/src, or `--help`); run `cargo xtask codegen`"
    } else {
        "nothing generates this file any more; run `cargo xtask codegen`, which removes it"
    }
}

/// The files that are not as they would be written, and what they should be; nothing for those that should go.
pub(crate) fn drift() -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let mut build = cargo::whole("build");
    let program = cargo::build(build.args(["--example", "generated"]), "generated")?;
    let output = Command::new(&program)
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    ensure!(output.status.success(), "{} failed", program.display());
    let document = fs::read_to_string(paths::root().join(DOCUMENT))
        .with_context(|| format!("reading {DOCUMENT}"))?;
    let mut wanted = wanted(&String::from_utf8_lossy(&output.stdout), &document)?;
    wanted.insert(commands::DOCUMENT.to_owned(), commands::page()?);
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

/// Every file as it should be: what `output` says, put where it belongs.
fn wanted(output: &str, document: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut document = document.to_owned();
    for part in output.split(">>> ").skip(1) {
        let (head, text) = part.split_once('\n').context("a text without a place")?;
        match head.split_once(' ') {
            Some(("manifest", name)) => {
                files.insert(format!("{MANIFESTS}{name}"), text.to_owned());
            }
            Some(("section", name)) => document = with_section(&document, name, text)?,
            _ => bail!("`{head}` is not a place"),
        }
    }
    ensure!(!files.is_empty(), "nothing was generated");
    files.insert(DOCUMENT.to_owned(), document);
    Ok(files)
}

/// The document with `text` between the markers of `name`.
fn with_section(document: &str, name: &str, text: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- generated: {name} -->");
    let parts = document.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.with_context(|| {
        format!("{DOCUMENT} has no place for `{name}`; add the lines `{begin}` and `{END}`")
    })?;
    Ok(format!(
        "{before}{begin}\n\n{}\n\n{END}{after}",
        text.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = ">>> manifest crds/a.yaml\nkind: A\n>>> section fields\n| a |\n";

    #[test]
    fn texts_go_where_they_belong_and_nothing_else_changes() {
        let document = "# T\n<!-- generated: fields -->\nold\n<!-- end generated -->\nprose\n";
        let files = wanted(OUTPUT, document).unwrap();
        assert_eq!(files["manifests/crds/a.yaml"], "kind: A\n");
        let expected =
            "# T\n<!-- generated: fields -->\n\n| a |\n\n<!-- end generated -->\nprose\n";
        assert_eq!(files[DOCUMENT], expected);
        assert_eq!(
            wanted(OUTPUT, expected).unwrap()[DOCUMENT],
            expected,
            "twice is once"
        );
    }

    #[test]
    fn a_document_without_the_markers_is_told_which_to_add() {
        let error = wanted(OUTPUT, "# T\n").unwrap_err().to_string();
        assert!(
            error.contains("add the lines `<!-- generated: fields -->`"),
            "{error}"
        );
        assert!(wanted(">>> elsewhere x\n", "").is_err());
    }
}
