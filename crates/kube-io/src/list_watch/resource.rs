//! Describes a resource to list and watch, and builds the paths and headers of its requests.

use crate::decode::TypeMeta;
use crate::path::Verb;

/// The encoding to request, and which part of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Whole objects as JSON. The only encoding of custom resources.
    Json,
    /// Whole objects as protobuf; as JSON if the server has no protobuf.
    Protobuf,
    /// Only `metadata`, as protobuf; whole objects as JSON if the server has no protobuf.
    Metadata,
    /// Only `metadata`, as JSON.
    JsonMetadata,
}

/// A resource, and which of its objects are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// The path of the collection: `/api/v1/nodes`.
    pub path: &'static str,
    /// The `labelSelector`, percent-encoded; empty for all objects.
    pub selector: &'static str,
    /// The `fieldSelector`, percent-encoded; empty for all objects.
    pub fields: &'static str,
    /// Set on each object: items of a list have no `kind` and `apiVersion`.
    pub type_meta: Option<TypeMeta>,
    /// Objects per page. A page should stay below ten megabytes.
    pub page_size: u32,
    /// Whether the server may not know the kind. It then has no objects.
    pub optional: bool,
    pub format: Format,
}

impl Resource {
    /// All objects of the resource at `path`, as JSON, on a server that must know it.
    pub const fn new(path: &'static str) -> Self {
        Self {
            path,
            selector: "",
            fields: "",
            type_meta: None,
            page_size: 500,
            optional: false,
            format: Format::Json,
        }
    }

    /// The `Accept` header of a list or a watch, the preferred encoding first.
    pub(super) fn accept(&self, verb: Verb) -> &'static str {
        match (self.format, verb) {
            (Format::Json, _) => "application/json",
            (Format::Protobuf, _) => "application/vnd.kubernetes.protobuf,application/json",
            (Format::Metadata, Verb::Watch) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                 application/json"
            }
            (Format::Metadata, _) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/json"
            }
            (Format::JsonMetadata, Verb::Watch) => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            }
            (Format::JsonMetadata, _) => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }

    /// The path of a page, or of the object `only`. `whole` requests everything in one page.
    pub(super) fn page_path(&self, only: Option<&str>, token: Option<&str>, whole: bool) -> String {
        let mut path = format!("{}?{}", self.path, self.query(only));
        if !whole {
            path = format!("{path}limit={}", self.page_size);
        }
        match token {
            Some(token) => format!("{path}&continue={}", escaped(token)),
            None => path,
        }
    }

    /// The path of a stream that the server ends after about `seconds`. It sends the changes after
    /// `version`; without a version, all objects and then the changes. `only` selects one object.
    pub(super) fn stream_path(
        &self,
        only: Option<&str>,
        version: Option<&str>,
        seconds: u64,
    ) -> String {
        let path = format!(
            "{}?{}watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}",
            self.path,
            self.query(only)
        );
        match version {
            Some(version) => format!("{path}&resourceVersion={}", escaped(version)),
            None => format!("{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
    }

    /// The start of the query, which selects the objects.
    fn query(&self, only: Option<&str>) -> String {
        if let Some(name) = only {
            return format!("fieldSelector=metadata.name%3D{}&", escaped(name));
        }
        let selectors = [
            ("labelSelector", self.selector),
            ("fieldSelector", self.fields),
        ];
        let mut query = String::new();
        for (name, selector) in selectors {
            if !selector.is_empty() {
                query.extend([name, "=", selector, "&"]);
            }
        }
        query
    }
}

/// Percent-encodes a value for a query.
fn escaped(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| {
        DIGITS
            .get(usize::from(value))
            .map_or('0', |digit| char::from(*digit))
    };
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Encoding;

    const NODES: Resource = Resource {
        page_size: 200,
        ..Resource::new("/api/v1/nodes")
    };

    #[test]
    fn paths_have_the_continue_token_or_the_version() {
        assert_eq!(
            NODES.page_path(None, None, false),
            "/api/v1/nodes?limit=200"
        );
        assert_eq!(
            NODES.page_path(None, Some("a b="), false),
            "/api/v1/nodes?limit=200&continue=a%20b%3D"
        );
        assert_eq!(NODES.page_path(None, None, true), "/api/v1/nodes?");
        assert_eq!(
            NODES.stream_path(None, Some("12"), 300),
            "/api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=12"
        );
        assert_eq!(
            NODES.page_path(Some("n1"), None, false),
            "/api/v1/nodes?fieldSelector=metadata.name%3Dn1&limit=200"
        );
        let selected = Resource {
            selector: "%21app",
            ..NODES
        };
        assert_eq!(
            selected.stream_path(None, Some("5"), 300),
            "/api/v1/nodes?labelSelector=%21app&watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=5"
        );
        let both = Resource {
            fields: "spec.unschedulable%3Dfalse",
            ..selected
        };
        assert_eq!(
            both.page_path(None, None, false),
            "/api/v1/nodes?labelSelector=%21app&fieldSelector=spec.unschedulable%3Dfalse&limit=200"
        );
    }

    #[test]
    fn json_is_accepted_in_every_format_and_protobuf_is_preferred() {
        let formats = [
            Format::Json,
            Format::Protobuf,
            Format::Metadata,
            Format::JsonMetadata,
        ];
        for format in formats {
            for verb in [Verb::List, Verb::Watch] {
                let accept = Resource { format, ..NODES }.accept(verb);
                assert!(accept.ends_with("application/json"), "{accept}");
                let best = accept.split(',').next().unwrap();
                let is_json = Encoding::of(best) == Encoding::Json;
                let expected = matches!(format, Format::Json | Format::JsonMetadata);
                assert_eq!(is_json, expected, "{accept}");
                let only_metadata = best.contains(";as=PartialObjectMetadata");
                let expected = matches!(format, Format::Metadata | Format::JsonMetadata);
                assert_eq!(only_metadata, expected, "{accept}");
                let is_list = only_metadata && verb == Verb::List;
                assert_eq!(best.contains("List;"), is_list, "{accept}");
            }
        }
    }
}
