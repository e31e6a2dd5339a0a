//! Finds the Services of a command line.

use std::collections::BTreeSet;

use agent_api::scope::{Scope, missing};
use cluster::source::Loaded;
use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::args::ServicesArgs;
use crate::args::values::ServiceName;
use crate::exit::Failure;
use crate::origin::Origin;

/// The named Services, or those of a namespace, otherwise all.
///
/// # Errors
/// A Service does not exist, or the namespace has none.
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
            "the input has no Service to show in namespace {namespace}"
        )));
    }
    Ok(Scope::Only(inside))
}

/// Completes a name without namespace from `-n`, the kubeconfig's context, or `default`.
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
