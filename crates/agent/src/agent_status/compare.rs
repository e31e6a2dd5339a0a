//! Compares a report with the previous one.

use crd::MAX_FALLBACKS;
use crd::topology_agent::{AgentCounts, AgentStatus, Fallback};

/// The difference between two reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Difference {
    /// None.
    None,
    /// Only numbers and texts. They change with the Services and endpoints of the cluster.
    Amounts,
    /// Something that a client may wait for: the phase, or the set of policies, drains, fallbacks and warnings.
    News,
}

/// Compares `report` with the previous one.
pub(super) fn difference(report: &AgentStatus, before: Option<&AgentStatus>) -> Difference {
    match before {
        Some(before) if report == before => Difference::None,
        Some(before) if without_amounts(report) == without_amounts(before) => Difference::Amounts,
        None | Some(_) => Difference::News,
    }
}

fn without_amounts(report: &AgentStatus) -> AgentStatus {
    let mut report = report.clone();
    report.counts = AgentCounts::default();
    for policy in &mut report.policies {
        policy.services = 0;
    }
    // Only the code counts; the text may contain a number.
    for warning in &mut report.warnings {
        warning.message.clear();
    }
    for drain in &mut report.drains {
        (drain.endpoints, drain.services_skipped) = (0, 0);
    }
    report
}

/// Keeps the age of a fallback that was reported before, even across restarts.
pub(super) fn keep_times(report: &mut AgentStatus, before: &AgentStatus) {
    for fallback in &mut report.fallbacks {
        let mut old = before.fallbacks.iter();
        let old = old.find(|old| {
            let since = fallback.since.clone();
            let old = (*old).clone();
            *fallback == Fallback { since, ..old }
        });
        if let Some(old) = old.filter(|old| old.since < fallback.since) {
            fallback.since.clone_from(&old.since);
        }
    }
    sort(&mut report.fallbacks);
}

/// The latest first, then by name; at most the number that one report may list.
fn sort(fallbacks: &mut Vec<Fallback>) {
    fallbacks.sort_by(|one, other| (&other.since, &one.service).cmp(&(&one.since, &other.service)));
    fallbacks.truncate(MAX_FALLBACKS);
}
