//! Converts one object into a value of `topology-core`, and collects its warnings.
//!
//! Conversion never fails: a bad field is reported and treated as absent, a bad port or endpoint is
//! skipped, and an object is [`Outcome::Invalid`] only if nothing useful is left of it.
//! The rules are those of kube-proxy's input handling (`KP-IN-..`), and those of the API server's
//! validation, because a file may hold objects that an API server refuses.

// A new variant must be handled in each `match`, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

mod address;
mod custom;
mod drain;
mod endpoint_slice;
mod external_ips;
mod frontends;
mod label_keys;
mod meta;
mod namespace;
mod node;
mod node_map;
mod node_pods;
mod policy;
mod ports;
mod quantity;
mod reached;
mod report;
mod service;
mod service_cidr;
mod topology_policy;

#[cfg(test)]
mod captured;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Clock;
use crate::intern::Interner;
use crate::object::{Ignored, Kind, Object, ObjectKey};
use crate::source::Aliases;
use crate::warning::{Subject, Warning};
use crate::{AllowLists, ServiceSelection};
use crd::MAP;
use object_tree::Node;

pub(crate) use endpoint_slice::trigger_time;
pub use label_keys::{annotation_labels, refused_label};
pub(crate) use node_map::NodeMap;
pub(crate) use report::Report;

/// The state that the conversions of a source share.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) interner: Interner,
    /// Read for each object. If the time is not known, rules about the time are not checked.
    pub(crate) clock: Clock,
    /// Which labels of the other Nodes to keep; `None` keeps all labels.
    pub(crate) others: Option<OtherNodes>,
    pub(crate) allowed: AllowLists,
    pub(crate) services: ServiceSelection,
    /// Limits what the aliases of all files expand to.
    pub(crate) aliases: Aliases,
}

impl Context {
    pub(crate) fn new(clock: Clock, allowed: AllowLists, services: ServiceSelection) -> Self {
        Self {
            clock,
            allowed,
            services,
            ..Self::default()
        }
    }
}

/// The labels to keep of each Node except `own`.
#[derive(Debug)]
pub(crate) struct OtherNodes {
    pub(crate) own: Arc<str>,
    pub(crate) keys: BTreeSet<Arc<str>>,
}

impl OtherNodes {
    /// The labels to keep of a Node; `None` means all.
    fn kept_of(&self, node: &str) -> Option<&BTreeSet<Arc<str>>> {
        (*self.own != *node).then_some(&self.keys)
    }
}

/// The result of converting one object.
#[derive(Debug)]
pub(crate) struct Converted {
    /// The object's first line.
    pub(crate) line: u32,
    pub(crate) outcome: Outcome,
    /// Milliseconds since 1970 when the object becomes valid, if it is only too early.
    pub(crate) usable_at: Option<i64>,
    pub(crate) warnings: Vec<Warning>,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Object(Object),
    /// Valid, but not used by this program.
    Ignored(ObjectKey, Ignored),
    /// Not valid; a warning says why.
    Invalid(ObjectKey),
    /// Of a kind that this program does not read; counted under this name.
    OtherKind(String),
    /// Without a usable kind or name; a warning says why.
    Unknown,
}

/// Converts one object of `file`.
pub(crate) fn object(node: &Node, file: &Arc<str>, context: &mut Context) -> Converted {
    let root = object_tree::Field::root(node);
    let mut report = Report::new(file, node.line, Subject::File);
    let outcome = match meta::kind_of(node) {
        None => {
            let message = if node.map().is_some() {
                "an object without a kind"
            } else {
                "not an object"
            };
            report.warn(
                &root,
                message,
                "write apiVersion, kind and metadata.name as Kubernetes does",
            );
            Outcome::Unknown
        }
        Some(Err(other)) => Outcome::OtherKind(other),
        Some(Ok(kind)) => {
            report = Report::new(file, node.line, Subject::Misnamed(kind, None));
            match meta::key_of(&root, kind, &mut context.interner, &mut report) {
                Some(key) => of_kind(&root, key, context, &mut report),
                None => Outcome::Unknown,
            }
        }
    };
    Converted {
        line: node.line,
        outcome,
        usable_at: report.usable_at(),
        warnings: report.finish(),
    }
}

/// Converts a `TopologyMap`. Returns its name, and no map if it is not valid.
pub(crate) fn node_map(
    node: &Node,
    context: &mut Context,
) -> (Arc<str>, Option<NodeMap>, Vec<Warning>) {
    let root = object_tree::Field::root(node);
    let interner = &mut context.interner;
    let mut report = Report::new(&"".into(), node.line, Subject::Other(MAP.kind(), None));
    let metadata = root.get("metadata");
    let name = metadata.get("name").text(&mut report).unwrap_or_default();
    report.name(name.to_owned());
    let map = node_map::convert(&root, interner, &mut report);
    (name.into(), map, report.finish())
}

fn of_kind(
    root: &object_tree::Field<'_>,
    key: ObjectKey,
    context: &mut Context,
    report: &mut Report,
) -> Outcome {
    let Context {
        interner,
        clock,
        others,
        allowed,
        services,
        aliases: _,
    } = context;
    let others = others.as_ref();
    let converted = match key.kind {
        Kind::Node => {
            let kept = others.and_then(|others| others.kept_of(&key.name.name));
            let node = node::convert(root, &key, kept, interner, report);
            Ok(Some(Object::Node(node)))
        }
        Kind::Service => {
            let converted = service::convert(root, &key, allowed, *services, interner, report);
            converted.map(|service| {
                service.map(|mut service| {
                    if let Some(keys) = &allowed.annotation_keys {
                        label_keys::restrict(&mut service, root, keys, interner, report);
                    }
                    Object::Service(service)
                })
            })
        }
        Kind::EndpointSlice => endpoint_slice::convert(root, &key, *services, interner, report)
            .map(|it| it.map(Object::EndpointSlice)),
        Kind::ServiceCidr => Ok(service_cidr::convert(root, &key, report).map(Object::ServiceCidr)),
        Kind::ClusterTopologyPolicy | Kind::TopologyPolicy => {
            let policy = topology_policy::convert(root, &key, interner, report);
            Ok(policy.map(|policy| Object::Policy(Box::new(policy))))
        }
        Kind::TopologyDrain => {
            Ok(drain::convert(root, &key, clock.now(), interner, report).map(Object::Drain))
        }
        Kind::PodMap => Ok(node_pods::convert(root, &key, interner, report).map(Object::PodMap)),
        Kind::Namespace => Ok(Some(Object::Namespace(namespace::convert(
            root, &key, interner, report,
        )))),
    };
    match converted {
        Ok(Some(object)) => Outcome::Object(object),
        Ok(None) => Outcome::Invalid(key),
        Err(reason) => Outcome::Ignored(key, reason),
    }
}
