//! The status of a drain: whether it may be, where it stands, and what it does.

use serde_json::{Value, json};

use super::judge::{fault, read};
use super::value::{Condition, number, status};
use super::{Collection, Name, World, Write};

/// What to write, if the status is not as it should be.
pub(super) fn plan(world: &World, name: &Name, object: &Value, now: i64) -> Option<Write> {
    let read = read(object, Some(now));
    let fault = fault(read.as_ref(), |read| read.snapshot.drains().count() == 1);
    let drain = read.as_ref().and_then(|read| read.snapshot.drains().next());
    let phase = drain.map_or("Refused", |drain| {
        let ramp = i64::from(drain.ramp_seconds) * 1000;
        if now >= drain.expires {
            "Expired"
        } else if now < drain.starts.saturating_add(ramp) {
            "Ramping"
        } else {
            "Active"
        }
    });
    let accepted = match fault {
        Some(fault) => Condition::new("Accepted", "False", "Refused", fault),
        None if phase == "Expired" => {
            let message = "it has ended; write a later expiresAt to renew it".to_owned();
            Condition::new("Accepted", "True", "Expired", message)
        }
        None => Condition::new("Accepted", "True", "Valid", "it is acted upon".to_owned()),
    };
    let (endpoints, skipped) = counts(world, name, object, phase);
    let wanted = json!({
        "phase": phase,
        "endpointsDrained": endpoints,
        "servicesSkipped": skipped,
    });
    status(Collection::Drains, object, &[accepted], wanted, now)
}

/// What the agents count, each of the whole cluster: the most that any of them sees.
fn counts(world: &World, name: &Name, object: &Value, phase: &str) -> (u64, u64) {
    if !matches!(phase, "Ramping" | "Active") {
        return (0, 0);
    }
    let generation = number(object, "/metadata/generation");
    let reports = world.reports.values();
    let counted = reports.filter_map(|report| report.drains.get(&name.1));
    let present = counted.filter(|(of, ..)| *of == generation);
    present.fold((0, 0), |(endpoints, skipped), (_, more, also)| {
        (endpoints.max(*more), skipped.max(*also))
    })
}
