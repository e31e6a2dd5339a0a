//! The Services that a command is about.

use std::collections::BTreeSet;

use topology_core::model::ObjectName;
use topology_core::snapshot::Snapshot;

use crate::cli::exit::Failure;

/// The Services to look at: those that are named, else all.
///
/// # Errors
/// There is none of a name.
pub(crate) fn named(snapshot: &Snapshot, wanted: &[String]) -> Result<Vec<ObjectName>, Failure> {
    if wanted.is_empty() {
        return Ok(snapshot
            .services()
            .map(|service| service.name.clone())
            .collect());
    }
    let find = |text: &String| {
        let name = text
            .split_once('/')
            .map(|(namespace, name)| ObjectName::new(namespace, name));
        let known = name.filter(|name| snapshot.service(name).is_some());
        known.ok_or_else(|| {
            Failure::input(format_args!(
                "the input has no Service {text} with a cluster IP"
            ))
        })
    };
    let found: BTreeSet<ObjectName> = wanted.iter().map(find).collect::<Result<_, _>>()?;
    Ok(found.into_iter().collect())
}
