//! The status of a policy: whether it is valid, on how many Nodes it is in force, and which
//! Services fall back.
//!
//! A report names only policies that decide for a Service on its node. If a report does not name a
//! policy, the policy decides nothing there, or the agent has not reported it yet. The controller
//! can distinguish the two after every agent had time for a report ([`every_report`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use crd::topology_agent::Fallback;
use crd::topology_agent::rate::every_report;
use crd::{LastTransition, PolicyStatus};
use serde_json::Value;
use topology_core::model::{ObjectName, PolicyName, Selector};

use super::collection::Collection;
use super::condition::{NewCondition, status_write};
use super::levels;
use super::observed::Observed;
use super::selected_nodes::NodeCount;
use super::validate::ValidatedPolicy;
use super::value::{list, number, text};
use super::write::Write;

/// Limit of Services that a message names.
const NAMED: usize = 3;

pub(super) fn id(name: &ObjectName) -> PolicyName {
    let ObjectName { namespace, name } = name;
    if namespace.is_empty() {
        PolicyName::cluster(Arc::clone(name))
    } else {
        PolicyName::namespaced(Arc::clone(namespace), Arc::clone(name))
    }
}

/// Returns the write of the status, if it differs, and whether time alone may change the status.
/// `since`: when the current generation was first read.
pub(super) fn plan(
    state: &Observed,
    collection: Collection,
    name: &ObjectName,
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
        None => NewCondition::new(
            "Accepted",
            "True",
            "Valid",
            "the policy is valid".to_owned(),
        ),
        Some(fault) => NewCondition::new("Accepted", "False", "Invalid", fault.clone()),
    };
    let conditions = [
        accepted,
        force.condition(),
        degraded(&fallbacks),
        levels::condition(state, collection, validated),
    ];
    let last = fallbacks
        .iter()
        .max_by_key(|fallback| (&fallback.since, &fallback.service));
    let before = || {
        let before = object.pointer("/status/lastTransition")?;
        serde_json::from_value(before.clone()).ok()
    };
    let desired = PolicyStatus {
        conditions: conditions.map(|condition| condition.at(object, now)).into(),
        matched_services: force.services,
        programmed_nodes: format!("{}/{}", force.current, force.expected()),
        last_transition: last
            .map(|fallback| last_transition(fallback))
            .or_else(before),
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

struct InForce {
    nodes: NodeCount,
    /// Nodes that report the policy, because it decides for a Service there.
    naming: usize,
    /// Nodes of these that use the current generation.
    current: usize,
    services: u64,
    /// Whether every agent had time to report the policy.
    is_settled: bool,
}

impl InForce {
    /// `age`: milliseconds since the current generation was first read.
    fn of(
        state: &Observed,
        id: &PolicyName,
        object: &Value,
        selector: &Selector,
        age: i64,
    ) -> Self {
        let generation = number(object, "/metadata/generation");
        let report_time = every_report(state.nodes.len() as u64).as_millis();
        let is_late = u128::try_from(age).is_ok_and(|age| age >= report_time);
        let mut force = Self {
            nodes: state.chosen.of(selector),
            naming: 0,
            current: 0,
            services: 0,
            is_settled: is_late || was_programmed(object, generation),
        };
        for (node, report) in state.reports.of_policy(id) {
            let info = state.nodes.get(node);
            if info.is_some_and(|info| selector.matches(&info.labels)) {
                force.naming += 1;
                force.current += usize::from(report.generation == generation);
                force.services = force.services.max(report.services);
            }
        }
        force
    }

    fn silent(&self) -> usize {
        self.nodes.all.saturating_sub(self.nodes.reporting)
    }

    /// Nodes on which the policy decides, and nodes without a report.
    fn expected(&self) -> usize {
        if self.is_settled {
            self.naming + self.silent()
        } else {
            self.nodes.all
        }
    }

    /// Whether some node may not have reported the policy yet.
    fn waits(&self) -> bool {
        !self.is_settled && self.naming < self.nodes.all
    }

    fn condition(&self) -> NewCondition {
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
            format!("the policy decides for no Service; {reporting} of {all} nodes report")
        } else {
            format!("{current} of {expected} nodes use the policy; {reporting} report")
        };
        NewCondition::new("Programmed", reason.status(), reason.as_str(), message)
    }
}

/// The reason of the condition `Programmed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The selector matches no Node.
    NoNodes,
    NoReports,
    /// Every agent had time to report, and the policy decides for no Service.
    DecidesNothing,
    /// Some nodes do not report the current generation yet.
    Pending,
    /// The policy decides on every node, and all report the current generation.
    EveryNode,
    /// All nodes on which the policy decides report the current generation.
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

/// Whether the status already reports this generation as in force.
fn was_programmed(object: &Value, generation: u64) -> bool {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.any(|condition| {
        text(condition, "/type") == "Programmed"
            && text(condition, "/status") == "True"
            && number(condition, "/observedGeneration") == generation
    })
}

fn degraded(fallbacks: &[&Fallback]) -> NewCondition {
    let Some(first) = fallbacks.first() else {
        let message = "every Service gets what the policy requests".to_owned();
        return NewCondition::new("Degraded", "False", "AsRequested", message);
    };
    let services: BTreeSet<&ObjectName> =
        fallbacks.iter().map(|fallback| &fallback.service).collect();
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
    let reasons: BTreeSet<&str> = fallbacks
        .iter()
        .map(|fallback| fallback.reason.as_str())
        .collect();
    let reason = reasons.first().copied().unwrap_or(first.reason.as_str());
    let message = format!(
        "{message}: {}",
        reasons.into_iter().collect::<Vec<_>>().join(", ")
    );
    NewCondition::new("Degraded", "True", reason, message)
}
