//! Writes the components of an image as `CycloneDX` JSON: every linked crate, and every Debian package with a file in it.

use serde_json::{Value, json};

use super::component::Component;
use super::contents::Contents;
use crate::cargo;
use crate::vm::command::output;

const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Lists the crates that are linked into the programs of `package`, with `package` itself.
pub(super) fn crates(package: &str) -> anyhow::Result<Vec<Component>> {
    let listed = output(cargo::command().args([
        "tree",
        "--locked",
        "--package",
        package,
        "--edges",
        "normal",
        "--target",
        PLATFORM,
        "--prefix",
        "none",
        "--format",
        "{p}|{l}",
    ]))?;
    let mut components: Vec<Component> = listed.lines().filter_map(parse).collect();
    components.sort();
    components.dedup();
    Ok(components)
}

/// Parses `serde v1.0.229|MIT OR Apache-2.0`, possibly with a folder or `(*)` behind the version.
fn parse(line: &str) -> Option<Component> {
    let (package, licence) = line.split_once('|')?;
    let (name, rest) = package.split_once(" v")?;
    let version = rest.split(' ').next()?;
    Some(Component {
        name: name.to_owned(),
        version: version.to_owned(),
        url: format!("pkg:cargo/{name}@{version}"),
        // Some crates use the deprecated slash.
        licence: Some(licence.trim_end_matches(" (*)").replace('/', " OR ")),
    })
}

pub(super) fn document(contents: &Contents) -> Value {
    let components: Vec<Value> = contents.components.iter().map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {
            "type": "container",
            "name": format!("ipvs-topo {}", contents.name),
            "version": env!("CARGO_PKG_VERSION"),
        }},
        "components": components,
    })
}

fn component(component: &Component) -> Value {
    let licences = component.licence.iter();
    let licences: Vec<Value> = licences.map(|text| json!({"expression": text})).collect();
    json!({
        "type": "library",
        "name": component.name,
        "version": component.version,
        "purl": component.url,
        "licenses": licences,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_is_read_with_and_without_a_folder() {
        let serde = parse("serde v1.0.229|MIT OR Apache-2.0").unwrap();
        assert_eq!(serde.url, "pkg:cargo/serde@1.0.229");
        let own = parse("agent v0.1.0 (/root/agent)|MIT/Apache-2.0 (*)").unwrap();
        assert_eq!(
            (own.name.as_str(), own.version.as_str()),
            ("agent", "0.1.0")
        );
        assert_eq!(own.licence.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(parse(""), None);
    }
}
