//! Reads slices of other writers, and the last writer of their endpoints.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use topology_core::hints::{self, HintedEndpoint};
use topology_core::model::{Family, Hints, ObjectName};

use super::super::value::{list, number, put, text};
use super::super::write::MANAGER;

/// Controllers of Kubernetes; they write all fields of their slices.
const THEIRS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];
const MANAGED_BY: &str = "/metadata/labels/endpointslice.kubernetes.io~1managed-by";
const SERVICE_NAME: &str = "/metadata/labels/kubernetes.io~1service-name";

/// The Service and the address family of slices that are hinted together.
pub(super) type Group = (ObjectName, Family);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slice {
    service: ObjectName,
    family: Family,
    pub(super) version: String,
    generation: u64,
    pub(super) author: Author,
    pub(super) endpoints: Vec<Value>,
}

/// The last writer of the endpoints of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Author {
    Us,
    /// A controller of Kubernetes, which may overwrite the endpoints at any time.
    Kubernetes(String),
    /// A writer that declared all endpoints by server-side apply.
    Declared(String),
    /// Another writer; empty if unknown.
    Other(String),
}

/// A write of this program on a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    asked: Vec<Value>,
    answer: Slice,
}

impl Author {
    fn of(object: &Value) -> Self {
        let manager = text(object, MANAGED_BY);
        if THEIRS.contains(&manager) {
            return Self::Kubernetes(manager.to_owned());
        }
        let entries = list(object, "/metadata/managedFields").iter();
        let owners = entries.filter(|entry| entry.pointer("/fieldsV1/f:endpoints").is_some());
        let owners: Vec<&Value> = owners.collect();
        let name = |owner: &Value| text(owner, "/manager").to_owned();
        let mut appliers = owners
            .iter()
            .filter(|owner| text(owner, "/operation") == "Apply");
        if let Some(applier) = appliers.next() {
            return Self::Declared(name(applier));
        }
        let mut others = owners
            .iter()
            .filter(|owner| text(owner, "/manager") != MANAGER);
        match others.next() {
            Some(other) => Self::Other(name(other)),
            None if owners.is_empty() => Self::Other(String::new()),
            None => Self::Us,
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Us => MANAGER,
            Self::Kubernetes(name) | Self::Declared(name) | Self::Other(name) => {
                if name.is_empty() {
                    "another writer"
                } else {
                    name
                }
            }
        }
    }
}

impl Slice {
    /// Reads a slice; `None` if it has no IP addresses or no Service.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let family = match text(object, "/addressType") {
            "IPv4" => Family::V4,
            "IPv6" => Family::V6,
            _ => return None,
        };
        let service = text(object, SERVICE_NAME);
        (!service.is_empty()).then(|| Self {
            service: ObjectName::new(text(object, "/metadata/namespace"), service),
            family,
            version: text(object, "/metadata/resourceVersion").to_owned(),
            generation: number(object, "/metadata/generation"),
            author: Author::of(object),
            endpoints: list(object, "/endpoints").to_vec(),
        })
    }

    pub(super) fn group(&self) -> Group {
        (self.service.clone(), self.family)
    }

    pub(super) fn is_hinted(&self) -> bool {
        !hints_of(&self.endpoints).is_empty()
    }

    /// Converts to the input of the allocator.
    pub(super) fn to_hint(&self, name: &str) -> hints::HintedSlice {
        hints::HintedSlice {
            name: name.into(),
            members: self.endpoints.iter().map(member).collect(),
        }
    }

    /// The endpoints with the hints of `hinted`, if any hint differs.
    pub(super) fn with(&self, hinted: &hints::HintedSlice) -> Option<Vec<Value>> {
        let pairs = || self.endpoints.iter().zip(&hinted.members);
        let differ = |(old, new): (&Value, &HintedEndpoint)| member(old).hints != new.hints;
        pairs().any(differ).then(|| {
            let changed = pairs().map(|(old, new)| hint(old.clone(), new.hints.as_ref()));
            changed.collect()
        })
    }
}

impl Written {
    pub(super) fn new(asked: Vec<Value>, answer: Slice) -> Self {
        Self { asked, answer }
    }

    /// Whether the same write of `endpoints` would change nothing.
    pub(super) fn is_answer_to(&self, endpoints: &[Value], slice: &Slice) -> bool {
        self.asked == endpoints && self.answer.generation == slice.generation
    }

    /// Whether the next write came from another writer and changed only our hints.
    pub(super) fn is_undone_by(&self, slice: &Slice) -> bool {
        let answer = &self.answer;
        slice.author != Author::Us
            && slice.generation == answer.generation + 1
            && hints_of(&slice.endpoints) != hints_of(&answer.endpoints)
            && bare(&slice.endpoints) == bare(&answer.endpoints)
    }

    /// Whether every hint on `slice` is ours.
    pub(super) fn is_kept_by(&self, slice: &Slice) -> bool {
        let ours = hints_of(&self.answer.endpoints);
        let theirs = hints_of(&slice.endpoints);
        theirs
            .iter()
            .all(|(address, hints)| ours.get(address) == Some(hints))
    }
}

fn hints_of(endpoints: &[Value]) -> BTreeMap<&str, Hints> {
    let hinted = endpoints.iter().filter_map(|endpoint| {
        let hints = member(endpoint).hints?;
        Some((text(endpoint, "/addresses/0"), hints))
    });
    hinted.collect()
}

/// The endpoints without hints, sorted.
fn bare(endpoints: &[Value]) -> Vec<String> {
    let bare = endpoints
        .iter()
        .map(|endpoint| hint(endpoint.clone(), None).to_string());
    let mut bare: Vec<String> = bare.collect();
    bare.sort_unstable();
    bare
}

/// Like kube-proxy, treats an endpoint without the condition `ready` as ready.
fn member(endpoint: &Value) -> HintedEndpoint {
    let own = |path: &str| {
        let found = endpoint.pointer(path).and_then(Value::as_str);
        found.map(Into::into)
    };
    let names = |path: &str| {
        let all = list(endpoint, path).iter();
        all.map(|name| text(name, "/name").into()).collect()
    };
    let hints = Hints {
        zones: names("/hints/forZones"),
        nodes: names("/hints/forNodes"),
    };
    let ready = endpoint
        .pointer("/conditions/ready")
        .and_then(Value::as_bool);
    HintedEndpoint {
        node: own("/nodeName"),
        zone: own("/zone"),
        ready: Some(ready.unwrap_or(true)),
        hints: (hints != Hints::default()).then_some(hints),
    }
}

fn hint(mut endpoint: Value, hints: Option<&Hints>) -> Value {
    if let Some(fields) = endpoint.as_object_mut() {
        fields.remove("hints");
    }
    if let Some(hints) = hints {
        let mut written = Map::new();
        for (field, names) in [("forZones", &hints.zones), ("forNodes", &hints.nodes)] {
            if !names.is_empty() {
                let names = names.iter().map(|name| json!({ "name": &**name }));
                written.insert(field.to_owned(), names.collect());
            }
        }
        put(&mut endpoint, "hints", written);
    }
    endpoint
}
