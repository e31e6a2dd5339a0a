//! The status of a drain: whether it is accepted, its phase, and its effect.

use crd::{DrainPhase, DrainStatus};
use serde_json::Value;
use topology_core::model::{Drain, ObjectName};

use super::collection::Collection;
use super::condition::{NewCondition, status_write};
use super::observed::Observed;
use super::validate::ValidatedDrain;
use super::value::number;
use super::write::Write;

fn phase_of(drain: &Drain, now: i64) -> DrainPhase {
    let ramp = i64::from(drain.ramp_seconds) * 1000;
    if now >= drain.expires {
        DrainPhase::Expired
    } else if now < drain.starts.saturating_add(ramp) {
        DrainPhase::Ramping
    } else {
        DrainPhase::Active
    }
}

/// Returns the write of the status, if it differs.
pub(super) fn plan(
    state: &Observed,
    name: &ObjectName,
    object: &Value,
    validated: &ValidatedDrain,
    now: i64,
) -> Option<Write> {
    let drain = validated.drain.as_ref();
    let phase = drain.map_or(DrainPhase::Refused, |drain| phase_of(drain, now));
    let accepted = match (drain, phase) {
        (Err(fault), _) => NewCondition::new("Accepted", "False", "Refused", fault.clone()),
        (Ok(_), DrainPhase::Expired) => {
            let message = "the drain has expired; set a later expiresAt to renew it".to_owned();
            NewCondition::new("Accepted", "True", "Expired", message)
        }
        (Ok(_), DrainPhase::Ramping | DrainPhase::Active | DrainPhase::Refused) => {
            NewCondition::new(
                "Accepted",
                "True",
                "Valid",
                "the drain is in effect".to_owned(),
            )
        }
    };
    let (endpoints_drained, services_skipped) = counts(state, name, object, phase);
    let desired = DrainStatus {
        conditions: vec![accepted.at(object, now)],
        phase,
        endpoints_drained,
        services_skipped,
    };
    status_write(Collection::Drains, object, &desired)
}

/// The largest counts that an agent reports; each agent counts the whole cluster.
fn counts(state: &Observed, name: &ObjectName, object: &Value, phase: DrainPhase) -> (u64, u64) {
    if matches!(phase, DrainPhase::Expired | DrainPhase::Refused) {
        return (0, 0);
    }
    let generation = number(object, "/metadata/generation");
    let counted = state.reports.of_drain(&name.name);
    let present = counted.filter(|report| report.generation == generation);
    present.fold((0, 0), |(endpoints, skipped), report| {
        (
            endpoints.max(report.endpoints),
            skipped.max(report.services_skipped),
        )
    })
}
