//! The status of a policy: whether it is valid, on how many Nodes it is in force, and which Services fall back.
//!
//! A report names only the policies that decide for a Service on its node. If a report does not name a policy, the policy
//! decides nothing there, or the agent has read it and not reported yet. The two look the same until every agent has had
//! the time for a report ([`every_report`]).

use std::collections::BTreeSet;

use crd::topology_agent::Fallback;
use crd::topology_agent::rate::every_report;
use crd::{LastTransition, PolicyStatus};
use serde_json::Value;
use topology_core::model::{ObjectName, PolicyName, Selector};

use super::collection::Collection;
use super::condition::{Verdict, status_write};
use super::levels;
use super::observed::Observed;
use super::selected_nodes::NodeCount;
use super::validate::ValidatedPolicy;
use super::value::{list, number, text};
use super::write::{Name, Write};

/// The number of Services that a message names.
const NAMED: usize = 3;

/// The name of the policy in an object.
pub(super) fn id(name: &Name) -> PolicyName {
    let (namespace, name) = name;
    if namespace.is_empty() {
        PolicyName::cluster(name.as_str())
    } else {
        PolicyName::namespaced(namespace.as_str(), name.as_str())
    }
}

/// Returns the write of the status, if it differs, and whether time alone may change it. `since`: when its present
/// generation was first read.
pub(super) fn plan(
    state: &Observed,
    collection: Collection,
    name: &Name,
    validated: &ValidatedPolicy,
    since: i64,
    now: i64,
) -> (Option<Write>, bool) {
    let Some(object) = state.objects.get(&(collection, name.clone())) else {
        return (None, false);
    };
    let id = id(name);
    let force = InForce::of(state, &id, object, &validated.nodes, now - since);
    let fallbacks: Vec<&Fallback> = state.reports.fallbacks_of(&id).collect();
    let accepted = match &validated.fault {
        None => Verdict::new(
            "Accepted",
            "True",
            "Valid",
            "the policy is valid".to_owned(),
        ),
        Some(fault) => Verdict::new("Accepted", "False", "Invalid", fault.clone()),
    };
    let conditions = [
        accepted,
        force.condition(),
        degraded(&fallbacks),
        levels::condition(state, collection, validated),
    ];
    let last = fallbacks
        .iter()
        .max_by_key(|one| (&one.since, &one.service));
    let before = || {
        let before = object.pointer("/status/lastTransition")?;
        serde_json::from_value(before.clone()).ok()
    };
    let desired = PolicyStatus {
        conditions: conditions.map(|one| one.at(object, now)).into(),
        matched_services: force.services,
        programmed_nodes: format!("{}/{}", force.current, force.expected()),
        last_transition: last.map(|one| last_transition(one)).or_else(before),
    };
    let write = status_write(collection, object, &desired);
    (write, force.waits())
}

fn last_transition(fallback: &Fallback) -> LastTransition {
    LastTransition {
        service: fallback.service.to_string(),
        from: fallback.from.clone().unwrap_or_default(),
        to: fallback.to.clone(),
        reason: fallback.reason.as_str().to_owned(),
    }
}

/// The nodes on which a policy is in force.
struct InForce {
    /// Nodes that its selector chooses.
    nodes: NodeCount,
    /// Nodes that report that it decides for a Service there.
    naming: usize,
    /// Those of them that use its present generation.
    current: usize,
    services: u64,
    /// Whether every agent had the time to report it.
    is_settled: bool,
}

impl InForce {
    /// `age`: milliseconds since the present generation was first read.
    fn of(
        state: &Observed,
        id: &PolicyName,
        object: &Value,
        selector: &Selector,
        age: i64,
    ) -> Self {
        let generation = number(object, "/metadata/generation");
        let patience = every_report(state.nodes.len() as u64).as_millis();
        let is_late = u128::try_from(age).is_ok_and(|age| age >= patience);
        let mut force = Self {
            nodes: state.chosen.of(selector),
            naming: 0,
            current: 0,
            services: 0,
            is_settled: is_late || was_programmed(object, generation),
        };
        for (node, report) in state.reports.of_policy(id) {
            let place = state.nodes.get(node);
            if place.is_some_and(|place| selector.is_empty() || selector.matches(&place.labels)) {
                force.naming += 1;
                force.current += usize::from(report.generation == generation);
                force.services = force.services.max(report.services);
            }
        }
        force
    }

    /// Nodes whose agents do not report.
    fn silent(&self) -> usize {
        self.nodes.all.saturating_sub(self.nodes.reporting)
    }

    /// Nodes on which it decides, and nodes without a report.
    fn expected(&self) -> usize {
        if self.is_settled {
            self.naming + self.silent()
        } else {
            self.nodes.all
        }
    }

    /// Whether some node may not have reported it yet.
    fn waits(&self) -> bool {
        !self.is_settled && self.naming < self.nodes.all
    }

    fn condition(&self) -> Verdict {
        let NodeCount { all, reporting } = self.nodes;
        let expected = self.expected();
        let reason = match (all, reporting, self.naming) {
            (0, _, _) => Reach::NoNodes,
            (_, 0, _) => Reach::NoReports,
            (_, _, 0) if self.is_settled => Reach::DecidesNothing,
            _ if self.current < expected => Reach::Pending,
            (all, _, naming) if naming == all => Reach::EveryNode,
            _ => Reach::WhereItDecides,
        };
        let current = self.current;
        let message = if reason == Reach::DecidesNothing {
            format!("no node reports that it decides for a Service; {reporting} of {all} report")
        } else {
            format!("{current} of {expected} nodes act by it; {reporting} report")
        };
        Verdict::new("Programmed", reason.status(), reason.as_str(), message)
    }
}

/// The reason of the condition `Programmed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// There is no Node.
    NoNodes,
    /// No agent reports.
    NoReports,
    /// Every agent reported, and it decides for no Service.
    DecidesNothing,
    /// It decides on nodes that do not report its generation yet.
    Pending,
    /// It decides on every node, and all report its generation.
    EveryNode,
    /// All nodes on which it decides report its generation.
    WhereItDecides,
}

impl Reach {
    const fn status(self) -> &'static str {
        match self {
            Self::NoNodes | Self::NoReports | Self::DecidesNothing => "Unknown",
            Self::Pending => "False",
            Self::EveryNode | Self::WhereItDecides => "True",
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::NoNodes => "NoNodes",
            Self::NoReports => "NoReports",
            Self::DecidesNothing => "DecidesNothing",
            Self::Pending => "Pending",
            Self::EveryNode => "EveryNode",
            Self::WhereItDecides => "WhereItDecides",
        }
    }
}

/// Whether the status says that this generation is in force. It stays so while Services are added and deleted.
fn was_programmed(object: &Value, generation: u64) -> bool {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.any(|one| {
        text(one, "/type") == "Programmed"
            && text(one, "/status") == "True"
            && number(one, "/observedGeneration") == generation
    })
}

fn degraded(fallbacks: &[&Fallback]) -> Verdict {
    let Some(first) = fallbacks.first() else {
        let message = "every Service gets what it asks".to_owned();
        return Verdict::new("Degraded", "False", "AsAsked", message);
    };
    let services: BTreeSet<&ObjectName> = fallbacks.iter().map(|one| &one.service).collect();
    let named: Vec<String> = services
        .iter()
        .take(NAMED)
        .map(ToString::to_string)
        .collect();
    let more = services.len().saturating_sub(NAMED);
    let mut message = named.join(", ");
    if more > 0 {
        message.extend([format!(" and {more} more")]);
    }
    let reasons: BTreeSet<&str> = fallbacks.iter().map(|one| one.reason.as_str()).collect();
    let reason = reasons.first().copied().unwrap_or(first.reason.as_str());
    let message = format!(
        "{message}: {}",
        reasons.into_iter().collect::<Vec<_>>().join(", ")
    );
    Verdict::new("Degraded", "True", reason, message)
}
