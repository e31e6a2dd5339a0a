//! The status of a policy: whether it is valid, on how many Nodes it is in force, and where it cannot be had as asked.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use topology_core::model::Selector;

use super::judge::{fault, read};
use super::report::Fallback;
use super::value::{Condition, number, put, status};
use super::{Collection, Name, World, Write};

/// So many Services are named in a message.
const NAMED: usize = 3;

/// What to write, if the status is not as it should be.
pub(super) fn plan(
    world: &World,
    collection: Collection,
    name: &Name,
    object: &Value,
    now: i64,
) -> Option<Write> {
    let read = read(object, None);
    let fault = fault(read.as_ref(), |read| read.snapshot.policies().count() == 1);
    let policy = read
        .as_ref()
        .and_then(|read| read.snapshot.policies().next());
    let selector = policy.map(|policy| &policy.node_selector);
    let force = InForce::of(world, collection, name, object, selector);
    let fallbacks = fallbacks(world, collection, name);
    let accepted = match fault {
        None => Condition::new(
            "Accepted",
            "True",
            "Valid",
            "the policy is valid".to_owned(),
        ),
        Some(fault) => Condition::new("Accepted", "False", "Invalid", fault),
    };
    let conditions = [accepted, force.condition(), degraded(&fallbacks)];
    let mut wanted = json!({
        "matchedServices": force.services,
        "programmedNodes": format!("{}/{}", force.nodes, force.all),
    });
    if let Some(last) = fallbacks
        .iter()
        .max_by_key(|one| (&one.since, &one.service))
    {
        let last = json!({
            "service": last.service, "from": last.from, "to": last.to, "reason": last.reason,
        });
        put(&mut wanted, "lastTransition", last);
    } else if let Some(before) = object.pointer("/status/lastTransition") {
        put(&mut wanted, "lastTransition", before.clone());
    }
    status(collection, object, &conditions, wanted, now)
}

/// Where a policy is in force.
struct InForce {
    /// Nodes whose agents report.
    reporting: usize,
    /// Nodes whose agents act by its present generation.
    nodes: usize,
    /// Nodes that it is for.
    all: usize,
    services: u64,
}

impl InForce {
    fn of(
        world: &World,
        collection: Collection,
        name: &Name,
        object: &Value,
        selector: Option<&Selector>,
    ) -> Self {
        let key = (collection.kind().to_owned(), name.0.clone(), name.1.clone());
        let generation = number(object, "/metadata/generation");
        let (mut force, all) = (
            Self {
                reporting: 0,
                nodes: 0,
                all: 0,
                services: 0,
            },
            world.nodes.iter(),
        );
        for (node, place) in all {
            if selector.is_some_and(|selector| !selector.matches(&place.labels)) {
                continue;
            }
            force.all += 1;
            let Some(report) = world.reports.get(node) else {
                continue;
            };
            force.reporting += 1;
            if let Some((of, services)) = report.policies.get(&key) {
                force.nodes += usize::from(*of == generation);
                force.services = force.services.max(*services);
            }
        }
        force
    }

    fn condition(&self) -> Condition {
        let Self {
            reporting,
            nodes,
            all,
            ..
        } = self;
        let (status, reason) = match (*nodes, *all) {
            (_, 0) => ("Unknown", "NoNodes"),
            (nodes, all) if nodes == all => ("True", "EveryNode"),
            _ if *reporting == 0 => ("Unknown", "NoReports"),
            _ => ("False", "Pending"),
        };
        let message = format!("{nodes} of {all} nodes act by it; {reporting} report");
        Condition::new("Programmed", status, reason, message)
    }
}

/// Services that asked for this policy and get something else, on any Node.
fn fallbacks<'w>(world: &'w World, collection: Collection, name: &Name) -> Vec<&'w Fallback> {
    let mut parts = vec![collection.kind(), &name.0, &name.1];
    parts.retain(|part| !part.is_empty());
    let asked = parts.join("/");
    let all = world.reports.values().flat_map(|report| &report.fallbacks);
    all.filter(|one| one.policy == asked).collect()
}

fn degraded(fallbacks: &[&Fallback]) -> Condition {
    let Some(first) = fallbacks.first() else {
        let message = "every Service gets what it asks".to_owned();
        return Condition::new("Degraded", "False", "AsAsked", message);
    };
    let services: BTreeSet<&str> = fallbacks.iter().map(|one| &*one.service).collect();
    let named: Vec<&str> = services.iter().copied().take(NAMED).collect();
    let more = services.len().saturating_sub(NAMED);
    let mut message = named.join(", ");
    if more > 0 {
        message.extend([format!(" and {more} more")]);
    }
    let reasons: BTreeSet<&str> = fallbacks.iter().map(|one| &*one.reason).collect();
    let reason = reasons.first().copied().unwrap_or(&first.reason);
    let message = format!(
        "{message}: {}",
        reasons.into_iter().collect::<Vec<_>>().join(", ")
    );
    Condition::new("Degraded", "True", reason, message)
}
