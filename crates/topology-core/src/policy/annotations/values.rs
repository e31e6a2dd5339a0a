//! Parses the values of single annotations.

use std::str::FromStr;

use crate::policy::{
    Avoid, EmptyTier, Level, LevelKey, MAX_LEVELS, MinReady, Mode, OnNoMatch, Weighting,
};
use crate::scheduler::{Scheduler, UnknownScheduler};

/// The largest weight of a level.
pub(super) const MAX_WEIGHT: u32 = 10_000;
/// The largest number of ready endpoints that a level may need.
pub(super) const MAX_COUNT: u32 = 10_000;
/// The smallest percentage for `overprovision`.
pub(super) const LEAST_OVERPROVISION: u32 = 100;
/// The largest percentage for `overprovision` and `max-overload`.
pub(super) const MAX_PERCENT: u32 = 10_000;
/// The longest slow start: one day.
pub(super) const MAX_SECONDS: u32 = 86_400;
/// The largest value of `subset`: the largest weight.
pub(super) const MAX_SUBSET: u32 = 65_535;
/// The value for no percentage.
pub(super) const OFF: &str = "off";

/// An error in a list of levels.
pub(super) struct ListFault {
    pub(super) problem: String,
    /// The levels, if they are clear despite the error.
    pub(super) levels: Option<Vec<Level>>,
}

impl From<String> for ListFault {
    fn from(problem: String) -> Self {
        Self {
            problem,
            levels: None,
        }
    }
}

pub(super) fn mode(text: &str) -> Result<Mode, String> {
    let known = Mode::ALL.into_iter().find(|mode| mode.as_str() == text);
    known.ok_or_else(|| {
        "unknown mode; use hard, prefer, weighted, balanced or none, in lower case".to_owned()
    })
}

/// `node,zone,*`: the first level with endpoints takes all.
pub(super) fn keys(text: &str) -> Result<Vec<Level>, ListFault> {
    let keys = text.split(',').map(|part| LevelKey::parse(part.trim()));
    let level = |(at, key): (usize, Result<LevelKey, String>)| {
        Ok(Level::new(key?, if at == 0 { 100 } else { 0 }))
    };
    let levels: Result<Vec<Level>, String> = keys.enumerate().map(level).collect();
    check_levels(levels?)
}

/// `node=80,zone=15,*=5`, with or without percent signs.
pub(super) fn weights(text: &str) -> Result<Vec<Level>, ListFault> {
    let parts = text.split(',');
    let levels: Result<Vec<Level>, String> = parts.map(|part| weight(part.trim())).collect();
    check_levels(levels?)
}

fn weight(part: &str) -> Result<Level, String> {
    let Some((key, text)) = part.rsplit_once('=') else {
        return Err(format!(
            "`{part}` has no weight; write level=weight, such as node=80"
        ));
    };
    let (key, text) = (key.trim(), text.trim());
    let (digits, most) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100),
        None => (text, MAX_WEIGHT),
    };
    let weight = number(digits).filter(|weight| *weight <= most);
    let weight = weight.ok_or_else(|| weight_problem(part, key, text))?;
    Ok(Level::new(LevelKey::parse(key)?, weight))
}

/// The error for the weight `text` of the level `key`. For a fraction the message shows the percentage, or the parts of
/// 1,000 or 10,000.
fn weight_problem(part: &str, key: &str, text: &str) -> String {
    match part_of_one(text) {
        Some((percent, 100)) => format!(
            "the weight in `{part}` is not a whole number; write {key}={percent} or {key}={percent}%, and the others in percent too"
        ),
        Some((weight, all)) => format!(
            "the weight in `{part}` is not a whole number; write {key}={weight}, and the others as parts of {all} too"
        ),
        None => format!(
            "the weight in `{part}` is out of range; give a whole number from 0 to {MAX_WEIGHT}, or 0% to 100%"
        ),
    }
}

/// `0.8` as 80 of 100, `.125` as 125 of 1,000; `None` for other texts, and for fractions with more digits than a weight
/// has.
fn part_of_one(text: &str) -> Option<(u32, u32)> {
    let (whole, digits) = text.split_once('.')?;
    let digits = digits.trim_end_matches('0');
    let whole = match whole {
        "" | "0" => 0,
        "1" => 1,
        _ => return None,
    };
    let places = u32::try_from(digits.len())
        .ok()
        .filter(|places| *places <= 4)?;
    let fraction = match digits {
        "" => 0,
        digits => number::<u32>(digits)?,
    };
    let all = 10_u32.pow(places.max(2));
    let part = whole * all + fraction * 10_u32.pow(2_u32.saturating_sub(places));
    (part <= all).then_some((part, all))
}

/// The rules of `topologyKeys` (V3-V6). Of a repeated level the first one counts.
fn check_levels(levels: Vec<Level>) -> Result<Vec<Level>, ListFault> {
    if levels.len() > MAX_LEVELS {
        return Err(format!("{} levels; at most {MAX_LEVELS} are allowed", levels.len()).into());
    }
    let mut inner = levels.iter().rev().skip(1);
    if inner.any(|level| level.key == LevelKey::Any) {
        return Err("`*` comes before another level; write it last"
            .to_owned()
            .into());
    }
    let mut once: Vec<Level> = Vec::with_capacity(levels.len());
    let mut problem = None;
    for level in levels {
        if once.iter().any(|earlier| earlier.key == level.key) {
            problem = Some(format!(
                "level `{}` is listed twice; keep the first",
                level.key
            ));
        } else {
            once.push(level);
        }
    }
    match problem {
        None => Ok(once),
        Some(problem) => Err(ListFault {
            problem,
            levels: Some(once),
        }),
    }
}

pub(super) fn weighting(text: &str) -> Result<Weighting, String> {
    match text {
        "tier-share" => Ok(Weighting::TierShare),
        "endpoint-bias" => Ok(Weighting::EndpointBias),
        _ => Err(format!(
            "`{text}` is unknown; use tier-share or endpoint-bias"
        )),
    }
}

pub(super) fn empty_tier(text: &str) -> Result<EmptyTier, String> {
    match text {
        "cascade" => Ok(EmptyTier::Cascade),
        "renormalize" => Ok(EmptyTier::Renormalize),
        _ => Err(format!("`{text}` is unknown; use cascade or renormalize")),
    }
}

pub(super) fn on_no_match(text: &str) -> Result<OnNoMatch, String> {
    match text {
        "reject" => Ok(OnNoMatch::Reject),
        "drop" => Ok(OnNoMatch::Drop),
        _ => Err(format!("`{text}` is unknown; use reject or drop")),
    }
}

/// The entries of a list. Without the limit a Service could make every agent compare tens of thousands of them.
fn entries(text: &str) -> Result<impl Iterator<Item = &str>, String> {
    let entries = text.split(',').map(str::trim);
    match entries.clone().count() {
        0..=MAX_LEVELS => Ok(entries),
        count => Err(format!("{count} entries; at most {MAX_LEVELS} are allowed")),
    }
}

/// `zone=50%,node=1`: percent or number of ready endpoints.
pub(super) fn min_ready(text: &str) -> Result<Vec<(LevelKey, MinReady)>, String> {
    let mut found: Vec<(LevelKey, MinReady)> = Vec::new();
    for part in entries(text)? {
        let Some((key, least)) = part.rsplit_once('=') else {
            return Err(format!(
                "`{part}` has no number; write level=count or level=percent%, such as zone=2"
            ));
        };
        let (key, least) = (
            LevelKey::parse(key.trim())?,
            min_ready_of(part, least.trim())?,
        );
        if found.iter().any(|(earlier, _)| *earlier == key) {
            return Err(format!("level `{key}` is listed twice; keep the first"));
        }
        found.push((key, least));
    }
    Ok(found)
}

fn min_ready_of(part: &str, least: &str) -> Result<MinReady, String> {
    let found = match least.strip_suffix('%') {
        Some(percent) => number(percent.trim_end())
            .filter(|percent: &u8| *percent <= 100)
            .map(|percent| MinReady {
                percent,
                ..MinReady::default()
            }),
        None => number(least)
            .filter(|count| (1..=MAX_COUNT).contains(count))
            .map(|count| MinReady {
                count,
                ..MinReady::default()
            }),
    };
    found.ok_or_else(|| {
        format!(
            "the number in `{part}` is out of range; give a count from 1 to {MAX_COUNT} or 0% to 100%"
        )
    })
}

pub(super) fn overprovision(text: &str) -> Result<Option<u32>, String> {
    percent(text, LEAST_OVERPROVISION)
}

pub(super) fn max_overload(text: &str) -> Result<Option<u32>, String> {
    percent(text, 0)
}

/// A percentage of at least `least`, with or without its sign, or `off`.
fn percent(text: &str, least: u32) -> Result<Option<u32>, String> {
    if text == OFF {
        return Ok(None);
    }
    let percent = number(text.strip_suffix('%').unwrap_or(text).trim_end());
    let percent = percent.filter(|percent| (least..=MAX_PERCENT).contains(percent));
    percent.map(Some).ok_or_else(|| {
        format!(
            "`{text}` is out of range; give a percentage from {least} to {MAX_PERCENT}, or {OFF}"
        )
    })
}

/// `node` or `zone:soft`, separated by commas.
pub(super) fn avoid(text: &str) -> Result<Vec<Avoid>, String> {
    let mut found: Vec<Avoid> = Vec::new();
    for part in entries(text)? {
        let (key, soft) = match part.rsplit_once(':') {
            None => (part, false),
            Some((key, "soft")) => (key, true),
            Some((key, "hard")) => (key, false),
            Some((_, other)) => {
                return Err(format!(
                    "`{other}` is unknown; write soft or hard after the colon"
                ));
            }
        };
        let key = LevelKey::parse(key.trim())?;
        if key == LevelKey::Any {
            return Err("`*` would avoid every endpoint; name node, zone or a label".to_owned());
        }
        if found.iter().any(|avoid| avoid.key == key) {
            return Err(format!("`{key}` is listed twice; keep the first"));
        }
        found.push(Avoid { key, soft });
    }
    Ok(found)
}

pub(super) fn slow_start(text: &str) -> Result<u32, String> {
    let seconds = number(text).filter(|seconds| *seconds <= MAX_SECONDS);
    seconds.ok_or_else(|| {
        format!("`{text}` is out of range; give whole seconds from 0 to {MAX_SECONDS}")
    })
}

pub(super) fn subset(text: &str) -> Result<u32, String> {
    let weight = number(text).filter(|weight| (1..=MAX_SUBSET).contains(weight));
    weight.ok_or_else(|| {
        format!("`{text}` is out of range; give a whole number from 1 to {MAX_SUBSET}, such as 256")
    })
}

/// The name of a Kubernetes object.
pub(super) fn object_name(text: &str) -> Result<&str, String> {
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(ends) && part.ends_with(ends) && part.chars().all(|c| ends(c) || c == '-')
    };
    if text.len() <= 253 && text.split('.').all(part) {
        return Ok(text);
    }
    Err(format!(
        "`{text}` is not a name; give the name of a TopologyPolicy in the Service's namespace"
    ))
}

/// A scheduler of the kernel. Only the kernel of a node knows whether it has the module.
pub(super) fn scheduler(text: &str) -> Result<Scheduler, String> {
    text.parse()
        .map_err(|error: UnknownScheduler| error.to_string())
}

/// A number with digits only: no sign, no space.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
