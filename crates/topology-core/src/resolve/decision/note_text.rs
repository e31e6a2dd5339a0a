//! The texts of notes.

use std::fmt;

use super::Note;
use crate::hints::HintMode;
use crate::model::PolicyName;
use crate::policy::{LevelKey, Mode};
use crate::scheduler::Scheduler;

const PARTLY_INVALID: &str =
    "a topology setting of the Service is not valid and not used, the others are";
const BOUNDARY_UNREAD: &str = "the levels of the Service's own hard policy, or the name of its policy, cannot be read, connections are refused until they can";
const LAST_GOOD_STAYS: &str = "the levels of the Service's own hard policy, or the name of its policy, cannot be read, its last good version stays in use";

const LOCAL_ONLY: &str =
    "the traffic policy Local gives clients of each node its own endpoints only";

fn unknown_level(
    f: &mut fmt::Formatter<'_>,
    level: &LevelKey,
    similar: Option<&str>,
) -> fmt::Result {
    match level.label() {
        Some(label) => write!(f, "no Node has the label {label}")?,
        None => write!(f, "no Node has a place at level {level}")?,
    }
    similar.map_or(Ok(()), |similar| write!(f, ", did you mean {similar}?"))
}

fn hints_missing(f: &mut fmt::Formatter<'_>, mode: HintMode) -> fmt::Result {
    let field = mode.field();
    write!(f, "no endpoint has a hint, so {field} has no effect")
}

fn not_allowed(f: &mut fmt::Formatter<'_>, asked: Mode, by: &PolicyName) -> fmt::Result {
    let asked = asked.as_str();
    write!(
        f,
        "mode {asked} is not used, the next source decides: {by} allows owners other modes"
    )
}

fn not_listed(f: &mut fmt::Formatter<'_>, count: usize) -> fmt::Result {
    let (policies, select, are) = match count {
        1 => ("policy", "selects", "does not decide and is"),
        _ => ("policies", "select", "do not decide and are"),
    };
    write!(
        f,
        "{count} more {policies} that {select} the Service {are} not listed"
    )
}

fn unreachable_level(f: &mut fmt::Formatter<'_>, level: &LevelKey, by: &LevelKey) -> fmt::Result {
    write!(
        f,
        "level {level} never has an endpoint here, level {by} before it takes them all"
    )
}

/// The level that gets the share of an empty one.
fn receiver(level: Option<&LevelKey>) -> String {
    level.map_or_else(
        || "the other levels in proportion".to_owned(),
        |level| format!("level {level}"),
    )
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clipped { asked, given, by } => write!(
                f,
                "max-overload is {given} %, not {asked} %: {by} limits owners"
            ),
            Self::NotAllowed { asked, by } => not_allowed(f, *asked, by),
            Self::NoSuchPolicy { name } => write!(
                f,
                "there is no TopologyPolicy {name} in the namespace, the next source decides"
            ),
            Self::HintsMissing { mode } => hints_missing(f, *mode),
            Self::PoliciesNotListed { count } => not_listed(f, *count),
            Self::PartlyInvalid => f.write_str(PARTLY_INVALID),
            Self::BoundaryUnread => f.write_str(BOUNDARY_UNREAD),
            Self::LastGoodStays => f.write_str(LAST_GOOD_STAYS),
            Self::DrainIgnored { drain } => {
                write!(f, "drain {drain} is ignored, no other endpoint remains")
            }
            Self::DrainSpares { drain } => {
                write!(f, "drain {drain} spares Services with a hard policy")
            }
            Self::DrainLocal { drain } => write!(f, "drain {drain} has no effect, {LOCAL_ONLY}"),
            Self::LevelUnknown { level, similar } => unknown_level(f, level, similar.as_deref()),
            Self::LevelUnreachable { level, by } => unreachable_level(f, level, by),
            Self::AvoidIgnored { key } => write!(
                f,
                "endpoints with the same {key} are used, no other endpoint remains"
            ),
            Self::AvoidLocal => write!(f, "the annotation avoid has no effect, {LOCAL_ONLY}"),
            Self::Panic => f.write_str("too few endpoints for topology, all are alike"),
            Self::Merged { level, into } => write!(
                f,
                "level {level} has too few ready endpoints and counts as level {into}"
            ),
            Self::Capped { level, cap } => write!(
                f,
                "level {level} may take {cap} at most, the rest goes outward"
            ),
            Self::SchedulerMissing { asked } => write!(
                f,
                "this node has no scheduler {asked}, {} is used; load it: modprobe ip_vs_{asked}",
                Scheduler::default()
            ),
            Self::WeightClamped { scheduler } => {
                write!(f, "some share is not met, {}", scheduler.limits())
            }
            Self::OwnNodeUnknown => f.write_str("this Node is unknown, and so are its levels"),
            Self::ServingTerminating => f.write_str(
                "no endpoint that may serve is ready, so those that terminate but serve are used",
            ),
            Self::EmptyLevel { level, share, to } => {
                let to = receiver(to.as_ref());
                write!(f, "level {level} has no endpoint, its {share} go to {to}")
            }
        }
    }
}
