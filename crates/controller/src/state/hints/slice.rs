//! A slice that somebody else makes, and who wrote its endpoints last.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use topology_core::hints::{self, HintedEndpoint};
use topology_core::model::{Family, Hints};

use super::super::value::{list, name, number, put, text};
use super::super::write::{MANAGER, Name};

/// Controllers of Kubernetes that write all of their slices themselves.
const THEIRS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];
const MANAGED_BY: &str = "/metadata/labels/endpointslice.kubernetes.io~1managed-by";
const SERVICE_NAME: &str = "/metadata/labels/kubernetes.io~1service-name";

/// The Service and the address family of slices that are hinted together.
pub(super) type Group = (Name, Family);

/// An `EndpointSlice`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slice {
    service: Name,
    family: Family,
    pub(super) version: String,
    generation: u64,
    pub(super) author: Author,
    /// As they came.
    pub(super) endpoints: Vec<Value>,
}

/// Who wrote the endpoints of a slice last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Author {
    /// This program.
    Us,
    /// A controller of Kubernetes, which writes them whenever it likes.
    Kubernetes(String),
    /// Somebody who has declared all of them, by server-side apply.
    Declared(String),
    /// Somebody else; empty if that is not known.
    Other(String),
}

/// What was written on a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// The endpoints that were asked for.
    asked: Vec<Value>,
    /// What the API server made of it.
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

    /// A name for people.
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
    /// The slice, if it holds addresses of a Service.
    pub(super) fn read(object: &Value) -> Option<Self> {
        let family = match text(object, "/addressType") {
            "IPv4" => Family::V4,
            "IPv6" => Family::V6,
            _ => return None,
        };
        let service = text(object, SERVICE_NAME);
        (!service.is_empty()).then(|| Self {
            service: (name(object).0, service.to_owned()),
            family,
            version: text(object, "/metadata/resourceVersion").to_owned(),
            generation: number(object, "/metadata/generation"),
            author: Author::of(object),
            endpoints: list(object, "/endpoints").to_vec(),
        })
    }

    /// What it is hinted together with.
    pub(super) fn group(&self) -> Group {
        (self.service.clone(), self.family)
    }

    /// Whether any endpoint has hints.
    pub(super) fn is_hinted(&self) -> bool {
        !hints_of(&self.endpoints).is_empty()
    }

    /// As the allocator wants it.
    pub(super) fn to_hint(&self, name: &str) -> hints::HintedSlice {
        hints::HintedSlice {
            name: name.into(),
            members: self.endpoints.iter().map(member).collect(),
        }
    }

    /// Its endpoints with the hints of `hinted`, if these are others than it has.
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

    /// Whether `slice` is what came of asking for `endpoints`, so that asking again changes nothing.
    pub(super) fn is_answer_to(&self, endpoints: &[Value], slice: &Slice) -> bool {
        self.asked == endpoints && self.answer.generation == slice.generation
    }

    /// Whether somebody's next write left the endpoints as they were, but not our hints.
    pub(super) fn is_undone_by(&self, slice: &Slice) -> bool {
        let answer = &self.answer;
        slice.author != Author::Us
            && slice.generation == answer.generation + 1
            && hints_of(&slice.endpoints) != hints_of(&answer.endpoints)
            && bare(&slice.endpoints) == bare(&answer.endpoints)
    }

    /// Whether every hint on `slice` is one that we wrote.
    pub(super) fn is_kept_by(&self, slice: &Slice) -> bool {
        let ours = hints_of(&self.answer.endpoints);
        let theirs = hints_of(&slice.endpoints);
        theirs.iter().all(|one| ours.get(one.0) == Some(one.1))
    }
}

/// Hints by address.
fn hints_of(endpoints: &[Value]) -> BTreeMap<&str, Hints> {
    let hinted = endpoints.iter().filter_map(|endpoint| {
        let hints = member(endpoint).hints?;
        Some((text(endpoint, "/addresses/0"), hints))
    });
    hinted.collect()
}

/// The endpoints without hints, in an order of their own.
fn bare(endpoints: &[Value]) -> Vec<String> {
    let bare = endpoints
        .iter()
        .map(|one| hint(one.clone(), None).to_string());
    let mut bare: Vec<String> = bare.collect();
    bare.sort_unstable();
    bare
}

/// An endpoint as the allocator wants it. To proxies one that does not say whether it is ready is.
fn member(endpoint: &Value) -> HintedEndpoint {
    let own = |path: &str| {
        let found = endpoint.pointer(path).and_then(Value::as_str);
        found.map(Into::into)
    };
    let names = |path: &str| {
        let all = list(endpoint, path).iter();
        all.map(|one| text(one, "/name").into()).collect()
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

/// The endpoint with these hints.
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
