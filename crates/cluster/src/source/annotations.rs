//! The annotations of one object, as they are written: nothing else keeps their text.

use std::io::BufReader;
use std::path::Path;

use topology_core::model::ObjectName;

use super::place::{self, SourcePath};
use object_tree::{self as yaml, Node};

/// The annotations of the Service `name` whose keys begin with `prefix`, in the order of the text.
///
/// Reads the files once more. What cannot be read has none; of a Service that is written twice the last counts.
/// Standard input and pipes can be read only once, so nothing is found there.
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
