//! Reads the annotations of one object as they are written. The snapshot does not keep their text.

use std::io::BufReader;
use std::path::Path;

use topology_core::model::ObjectName;

use super::place::{self, SourcePath};
use object_tree::{self as yaml, Node};

/// Returns the annotations of the Service `name` whose keys begin with `prefix`, in the order of
/// the text.
///
/// Reads the files again, and ignores a file that cannot be read. If the Service is defined twice,
/// the last definition is used. The result is empty for standard input and pipes, which can be read
/// only once.
pub fn annotations(path: &Path, name: &ObjectName, prefix: &str) -> Vec<(String, String)> {
    let SourcePath::Path(root) = SourcePath::new(path) else {
        return Vec::new();
    };
    let Ok(listing) = place::list(&root) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in listing.files.into_keys() {
        let Ok(file) = place::open(Path::new(&*file)) else {
            continue;
        };
        // A file that is broken further down was reported when the cluster was read.
        let _end = yaml::read(BufReader::new(file), |node| {
            if is_service(&node, name) {
                found = of_object(&node, prefix);
            }
        });
    }
    found
}

fn is_service(node: &Node, name: &ObjectName) -> bool {
    let metadata = node.get("metadata");
    let text = |key: &str| metadata.and_then(|metadata| metadata.get(key)?.text());
    node.get("kind").and_then(Node::text) == Some("Service")
        && text("name") == Some(&name.name)
        && text("namespace").unwrap_or("default") == &*name.namespace
}

fn of_object(node: &Node, prefix: &str) -> Vec<(String, String)> {
    let annotations = node
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"));
    let entries = annotations.and_then(Node::map).unwrap_or_default().iter();
    let texts =
        entries.filter_map(|(key, value)| Some((key.to_string(), value.text()?.to_owned())));
    texts.filter(|(key, _)| key.starts_with(prefix)).collect()
}
