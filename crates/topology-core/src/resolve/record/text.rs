//! The texts of facts.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each function writes some of the facts; `Display` lists all"
)]

use std::fmt;

use super::Fact;
use crate::policy::{LevelKey, MinReady};

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drained { .. }
            | Self::Avoided { .. }
            | Self::HintsAgain { .. }
            | Self::TooFew { .. }
            | Self::Panic { .. }
            | Self::SlowStart { .. } => endpoints(self, f),
            Self::Level { .. } | Self::Merged { .. } | Self::Held { .. } | Self::Emptied { .. } => {
                levels(self, f)
            }
            Self::Spill { .. } | Self::Cap { .. } | Self::Spare { .. } => shares(self, f),
            Self::Each { .. } | Self::Subset { .. } | Self::Weight { .. } => weights(self, f),
        }
    }
}

fn endpoints(fact: &Fact, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fact {
        Fact::Drained {
            drain,
            endpoints,
            remaining,
        } => match endpoints {
            1 => write!(f, "drain {drain}: 1 endpoint keeps {remaining}"),
            _ => write!(f, "drain {drain}: {endpoints} endpoints keep {remaining}"),
        },
        Fact::Avoided { key, endpoints } => {
            write!(f, "same {key} is avoided: {endpoints} out")
        }
        Fact::HintsAgain { usable } => write!(f, "hints among the others: {usable} usable"),
        Fact::TooFew { usable, least } => {
            write!(f, "{usable} usable < {least}: all endpoints alike")
        }
        Fact::Panic {
            ready,
            total,
            percent,
        } => write!(
            f,
            "{ready} of {total} ready < {percent} %: all endpoints alike"
        ),
        Fact::SlowStart { endpoints } => {
            write!(f, "new endpoints that grow to their share: {endpoints}")
        }
        _ => Ok(()),
    }
}

fn levels(fact: &Fact, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fact {
        Fact::Level {
            level,
            weight,
            share,
            usable,
            draining,
            total,
        } => {
            write!(
                f,
                "{level}: weight {weight} = {share:#}, {usable} of {total} endpoints usable"
            )?;
            match draining {
                0 => Ok(()),
                count => write!(f, ", {count} draining"),
            }
        }
        Fact::Merged {
            level,
            into,
            usable,
            total,
            need,
        } => merged(f, (level, into), (*usable, *total), *need),
        Fact::Held {
            level,
            usable,
            counted,
            ..
        } => write!(
            f,
            "{level}: has {usable}, counts {counted} until the recovery hold is over"
        ),
        Fact::Emptied { level, share, to } => match to {
            Some(to) => write!(f, "{level}: empty, its {share:#} go to {to}"),
            None => write!(
                f,
                "{level}: empty, its {share:#} go to the others in proportion"
            ),
        },
        _ => Ok(()),
    }
}

fn shares(fact: &Fact, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fact {
        Fact::Spill {
            level,
            ready,
            total,
            available,
            before,
            accepted,
            after,
        } => write!(
            f,
            "{level}: {ready} of {total} ready carry {available:#}; share {before:#}, accepts {accepted:#}, ends with {after:#}"
        ),
        Fact::Cap {
            level,
            endpoints,
            demand,
            cap,
            inside,
            passed,
        } => write!(
            f,
            "{level}: endpoints {endpoints:#}, demand {demand:#}, at most {cap:#} stay; {inside:#} would, {passed:#} go outward"
        ),
        Fact::Spare {
            zone,
            endpoints,
            demand,
            share,
        } => {
            let zone = zone.as_deref().unwrap_or("unknown");
            write!(
                f,
                "zone {zone}: endpoints {endpoints:#}, demand {demand:#}, gets {share:#} of all traffic"
            )
        }
        _ => Ok(()),
    }
}

fn weights(fact: &Fact, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fact {
        Fact::Each {
            level,
            count,
            share,
        } => write!(f, "{level}: {count} x {share:#}"),
        Fact::Subset { level, kept, of } => write!(f, "{level}: {kept} of {of} endpoints stay"),
        Fact::Weight {
            level,
            count,
            share,
            weight,
        } => write!(f, "{level}: {count} x weight {weight} for {share:#} each"),
        _ => Ok(()),
    }
}

fn merged(
    f: &mut fmt::Formatter<'_>,
    (level, into): (&LevelKey, &LevelKey),
    (usable, total): (u32, u32),
    need: Option<MinReady>,
) -> fmt::Result {
    write!(f, "{level}: merges into {into}, ")?;
    match need {
        None => f.write_str("clients here are drained"),
        Some(need) if usable < need.count => write!(f, "{usable} ready < {}", need.count),
        Some(need) => write!(f, "{usable} of {total} ready < {} %", need.percent),
    }
}
