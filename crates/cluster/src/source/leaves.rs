//! Reads the values of a YAML file without Kubernetes objects, such as a program's configuration.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use super::parse;
use crate::warning::Warning;
use object_tree::{self as yaml, Node, Value};

/// A value that is not null, or a list or mapping that is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Counted from 1.
    pub line: u32,
    /// The path, such as `ipvs.excludeCIDRs[0]`; an empty list ends in `[]`, an empty mapping in `{}`.
    pub field: String,
    /// As written, without quotes; `None` for an empty list or mapping.
    pub text: Option<String>,
}

/// Returns the values in a YAML or JSON file, in the order of the text.
///
/// # Errors
/// The file cannot be read, is not YAML, or its aliases expand to too many values.
pub fn leaves(path: &Path) -> Result<Vec<Leaf>, Warning> {
    let name: Arc<str> = path.to_string_lossy().into();
    let file = File::open(path).map_err(|error| parse::unreadable(&name, &error.to_string()))?;
    let mut leaves = Vec::new();
    yaml::read(BufReader::new(file), |node| gather(&node, "", &mut leaves))
        .map_err(|error| parse::refused(&error, &name, 1))?;
    Ok(leaves)
}

fn gather(node: &Node, field: &str, leaves: &mut Vec<Leaf>) {
    let mut add = |field: String, text: Option<String>| {
        leaves.push(Leaf {
            line: node.line,
            field,
            text,
        });
    };
    match node.value() {
        Value::Map(entries) if entries.is_empty() => add(format!("{field}{{}}"), None),
        Value::List(items) if items.is_empty() => add(format!("{field}[]"), None),
        Value::Map(entries) => {
            let joint = if field.is_empty() { "" } else { "." };
            for (key, node) in entries {
                gather(node, &format!("{field}{joint}{key}"), leaves);
            }
        }
        Value::List(items) => {
            for (index, node) in items.iter().enumerate() {
                gather(node, &format!("{field}[{index}]"), leaves);
            }
        }
        Value::Scalar { text, .. } if !node.is_null() => {
            add(field.to_owned(), Some(text.to_string()));
        }
        Value::Scalar { .. } | Value::Shared(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(text: &str) -> Result<Vec<Leaf>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        leaves(file.path()).map_err(|warning| warning.message.to_string())
    }

    #[test]
    fn every_value_is_named_with_its_line() {
        let lines = "a: 1\nb:\n  c: [x, null, {d: \"\"}]\n  e: ~\nf: {g: [], h: {}}\n";
        let all = read(lines).unwrap();
        let all: Vec<_> = all
            .iter()
            .map(|leaf| (leaf.line, &*leaf.field, leaf.text.as_deref()))
            .collect();
        assert_eq!(
            all,
            [
                (1, "a", Some("1")),
                (3, "b.c[0]", Some("x")),
                (3, "b.c[2].d", Some("")),
                (5, "f.g[]", None),
                (5, "f.h{}", None),
            ]
        );
    }

    #[test]
    fn a_broken_file_and_a_yaml_bomb_are_refused() {
        assert!(read("a: [1").unwrap_err().contains("not valid YAML"));
        let lines = (1..30).map(|depth| {
            let before = depth - 1;
            format!("a{depth}: &a{depth} [*a{before}, *a{before}]\n")
        });
        let bomb = format!("a0: &a0 []\n{}", lines.collect::<String>());
        assert!(read(&bomb).unwrap_err().contains("aliases"));
        let missing = leaves(Path::new("/nowhere/config.conf")).unwrap_err();
        assert!(
            missing
                .to_string()
                .starts_with("/nowhere/config.conf: cannot be read")
        );
    }
}
