//! The status of a drain: whether it is accepted, its phase, and its effect.

use serde_json::{Value, json};
use topology_core::model::Drain;

use super::collection::Collection;
use super::observed::Observed;
use super::validate::ValidatedDrain;
use super::value::{Condition, number, status};
use super::write::{Name, Write};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ramping,
    Active,
    Expired,
    Refused,
}

impl Phase {
    fn of(drain: &Drain, now: i64) -> Self {
        let ramp = i64::from(drain.ramp_seconds) * 1000;
        if now >= drain.expires {
            Self::Expired
        } else if now < drain.starts.saturating_add(ramp) {
            Self::Ramping
        } else {
            Self::Active
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Ramping => "Ramping",
            Self::Active => "Active",
            Self::Expired => "Expired",
            Self::Refused => "Refused",
        }
    }
}

/// Returns the write of the status, if it differs.
pub(super) fn plan(
    state: &Observed,
    name: &Name,
    object: &Value,
    judged: &ValidatedDrain,
    now: i64,
) -> Option<Write> {
    let drain = judged.drain.as_ref();
    let phase = drain.map_or(Phase::Refused, |drain| Phase::of(drain, now));
    let accepted = match (drain, phase) {
        (Err(fault), _) => Condition::new("Accepted", "False", "Refused", fault.clone()),
        (Ok(_), Phase::Expired) => {
            let message = "it has ended; write a later expiresAt to renew it".to_owned();
            Condition::new("Accepted", "True", "Expired", message)
        }
        (Ok(_), Phase::Ramping | Phase::Active | Phase::Refused) => {
            Condition::new("Accepted", "True", "Valid", "it is acted upon".to_owned())
        }
    };
    let (endpoints, skipped) = counts(state, name, object, phase);
    let wanted = json!({
        "phase": phase.word(),
        "endpointsDrained": endpoints,
        "servicesSkipped": skipped,
    });
    status(Collection::Drains, object, &[accepted], wanted, now)
}

/// The largest counts that an agent reports; each agent counts the whole cluster.
fn counts(state: &Observed, name: &Name, object: &Value, phase: Phase) -> (u64, u64) {
    if matches!(phase, Phase::Expired | Phase::Refused) {
        return (0, 0);
    }
    let generation = number(object, "/metadata/generation");
    let counted = state.reports.of_drain(&name.1);
    let present = counted.filter(|told| told.generation == generation);
    present.fold((0, 0), |(endpoints, skipped), told| {
        (
            endpoints.max(told.endpoints),
            skipped.max(told.services_skipped),
        )
    })
}
