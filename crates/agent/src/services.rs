//! The Services that a command is about, and what is wrong in the input as far as it concerns them.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{Ignored, Kind, ObjectKey};
use cluster::source::Loaded;
use cluster::warning::{Subject, Warning};
use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::cli::ServicesArgs;
use crate::cli::exit::Failure;
use crate::cli::values::ServiceName;
use crate::origin::Origin;
use crate::output::describe;
use crate::output::view::WarningView;

/// Some Services, or all that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of the input.
    All,
    /// These.
    Only(BTreeSet<ObjectName>),
}

impl Scope {
    /// Whether a Service is one of them.
    pub(crate) fn has(&self, service: &ObjectName) -> bool {
        match self {
            Self::All => true,
            Self::Only(services) => services.contains(service),
        }
    }

    /// Those of `snapshot`, by name.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> Vec<ObjectName> {
        let services = snapshot.services().map(|service| &service.name);
        services.filter(|name| self.has(name)).cloned().collect()
    }

    /// Those of `warnings` that concern them, for people and programs.
    pub(crate) fn views(
        &self,
        snapshot: &Snapshot,
        warnings: &mut dyn Iterator<Item = &Warning>,
    ) -> Vec<WarningView> {
        let concerning = warnings.filter(|warning| self.concerns(snapshot, warning));
        concerning.map(describe::warning).collect()
    }

    /// Whether `warning` may be about what becomes of them: it is about one of them, one of their slices, a policy or a
    /// drain, or a file that may hold any of these.
    fn concerns(&self, snapshot: &Snapshot, warning: &Warning) -> bool {
        let Self::Only(services) = self else {
            return true;
        };
        let key = match &warning.subject {
            Subject::Object(key) => key,
            Subject::File => return true,
            Subject::Misnamed(..) | Subject::Other(..) => return false,
        };
        match key.kind {
            Kind::Service => services.contains(&key.name),
            Kind::EndpointSlice => {
                let mut slices = services.iter().flat_map(|name| snapshot.slices(name));
                slices.any(|slice| slice.name == key.name)
            }
            Kind::TopologyPolicy | Kind::ClusterTopologyPolicy | Kind::TopologyDrain => true,
            Kind::Node | Kind::ServiceCidr | Kind::Namespace => false,
        }
    }
}

/// The Services to look at: those that are named, or those of a namespace, else all.
///
/// # Errors
/// There is none of a name, or none in the namespace.
pub(crate) fn scope(
    args: &ServicesArgs,
    origin: &Origin,
    loaded: &Loaded,
) -> Result<Scope, Failure> {
    let namespace = args.namespace.as_deref();
    let snapshot = &loaded.snapshot;
    if args.services.is_empty() {
        return namespace.map_or(Ok(Scope::All), |namespace| {
            of_namespace(snapshot, namespace)
        });
    }
    let find = |written: &ServiceName| {
        let name = full_name(written, namespace, Some(origin))?;
        match snapshot.service(&name) {
            Some(_) => Ok(name),
            None => Err(Failure::input(missing(
                &name,
                &loaded.ignored,
                &mut loaded.warnings.iter(),
            ))),
        }
    };
    let found = args.services.iter().map(find);
    Ok(Scope::Only(found.collect::<Result<_, _>>()?))
}

fn of_namespace(snapshot: &Snapshot, namespace: &str) -> Result<Scope, Failure> {
    let names = snapshot.services().map(|service| &service.name);
    let inside = names.filter(|name| *name.namespace == *namespace);
    let inside: BTreeSet<ObjectName> = inside.cloned().collect();
    if inside.is_empty() {
        return Err(Failure::input(format_args!(
            "the input has no Service with a cluster IP in namespace {namespace}"
        )));
    }
    Ok(Scope::Only(inside))
}

/// A Service that is written without its namespace is in that of `-n`, else in that of the kubeconfig's context, else in
/// `default`.
///
/// # Errors
/// Two namespaces are named, or the kubeconfig cannot be used.
pub(crate) fn full_name(
    written: &ServiceName,
    namespace: Option<&str>,
    origin: Option<&Origin>,
) -> Result<ObjectName, Failure> {
    let context = match (&written.namespace, namespace, origin) {
        (None, None, Some(origin)) => origin.namespace()?,
        (_own, _given, _origin) => None,
    };
    let beside = namespace.or(context.as_deref());
    written.within(beside).map_err(Failure::input)
}

/// Why nothing can be said of the Service `name`, which the snapshot has not; with what else is wrong with it.
pub(crate) fn missing(
    name: &ObjectName,
    ignored: &BTreeMap<ObjectKey, Ignored>,
    warnings: &mut dyn Iterator<Item = &Warning>,
) -> String {
    let key = ObjectKey {
        kind: Kind::Service,
        name: name.clone(),
    };
    let mut words = match ignored.get(&key) {
        Some(why) => format!("Service {name} is {why}, so it has no virtual server"),
        None => format!("the input has no Service {name} with a cluster IP"),
    };
    for warning in warnings.filter(|warning| warning.subject.key() == Some(&key)) {
        words.push_str("; ");
        words.push_str(&warning.to_string());
    }
    words
}
