//! Converts `TopologyDrain`: domains that take no new connections for a while.

use jiff::{Span, Timestamp};
use topology_core::model::Drain;

use super::custom::{enum_value, key, names, number, sound};
use super::meta;
use super::report::Report;
use crate::intern::Interner;
use crate::object::ObjectKey;
use crd::{DRAIN, MAX_AHEAD_HOURS};
use object_tree::Field;

/// Returns `None` if the drain is not valid.
pub(crate) fn convert(
    root: &Field<'_>,
    name: &ObjectKey,
    now: Option<i64>,
    interner: &mut Interner,
    report: &mut Report,
) -> Option<Drain> {
    let whole = sound(root, &DRAIN, report)?;
    let whole = Field::root(&whole);
    let spec = whole.get("spec");
    let ramp_seconds = number(&spec.get("rampSeconds"), report)?;
    let (starts, expires) = times(root, &spec, now, report)?;
    if starts.is_none() && ramp_seconds > 0 {
        let message = "without metadata.creationTimestamp the start of the ramp is unknown; the drain applies in full at once";
        report.warn(
            &spec.get("rampSeconds"),
            message,
            "add creationTimestamp, or remove rampSeconds",
        );
    }
    let matched = spec.get("match");
    Some(Drain {
        name: name.name.name.clone(),
        generation: meta::generation(root, report),
        key: key(&matched.get("key"), report)?,
        values: names(&matched.get("values"), interner, report),
        scope: enum_value(&spec.get("scope"), report)?,
        starts: starts.unwrap_or_default().as_millisecond(),
        expires: expires.as_millisecond(),
        ramp_seconds,
        on_last_domain: enum_value(&spec.get("onLastDomain"), report)?,
        hard_services: enum_value(&spec.get("hardServices"), report)?,
        reason: interner.text(spec.get("reason").text(report)?),
    })
}

/// The start of the drain, if known, and its end. `None` if the end is not allowed.
fn times(
    root: &Field<'_>,
    spec: &Field<'_>,
    now: Option<i64>,
    report: &mut Report,
) -> Option<(Option<Timestamp>, Timestamp)> {
    let field = spec.get("expiresAt");
    let expires: Timestamp = field.parse("a time", "", report)?;
    let created = meta::created(root, report).and_then(|at| Timestamp::from_second(at).ok());
    let now = now.and_then(|now| Timestamp::from_millisecond(now).ok());
    if created.is_some_and(|created| expires <= created) {
        let message = "not after the drain's creation; the drain cannot be used as it is";
        report.warn(&field, message, "write a later time");
        return None;
    }
    // An operator may extend a drain, so the limit counts from now, not only from its creation.
    let limit = Span::new().hours(MAX_AHEAD_HOURS);
    let latest = created
        .max(now)
        .and_then(|from| from.checked_add(limit).ok());
    if latest.is_some_and(|latest| expires > latest) {
        let message =
            format!("more than {MAX_AHEAD_HOURS} hours ahead; the drain cannot be used as it is");
        report.warn(
            &field,
            message,
            "write an earlier time, and extend the drain before it ends",
        );
        if let Ok(from) = expires.checked_sub(limit) {
            report.usable_from(from.as_millisecond());
        }
        return None;
    }
    Some((created, expires))
}
