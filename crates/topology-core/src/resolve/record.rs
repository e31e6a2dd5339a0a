//! What each stage leaves behind for people: what came in, what went out, and the arithmetic.

mod text;

use std::sync::Arc;

use crate::policy::{LevelKey, MinReady};
use crate::ratio::Ratio;

/// What one stage did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRecord {
    /// 0 to 11.
    pub number: u8,
    /// One word for it.
    pub name: &'static str,
    /// Endpoints that could take traffic before it.
    pub came_in: u32,
    /// Endpoints that could take traffic after it.
    pub went_out: u32,
    /// The arithmetic, line by line; empty if the stage had nothing to do.
    pub facts: Vec<Fact>,
}

/// One line of arithmetic; its text is what people read, its values are exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// S1: a drain took endpoints out, or a part of them while it ramps.
    Drained {
        /// Its name.
        drain: Arc<str>,
        /// How many endpoints it covers.
        endpoints: u32,
        /// What is left to them.
        remaining: Ratio,
    },
    /// S2: a domain of this node was avoided.
    Avoided {
        /// The key of the domain.
        key: LevelKey,
        /// How many endpoints went.
        endpoints: u32,
    },
    /// S3: too few endpoints for topology, by count.
    TooFew {
        /// Usable endpoints.
        usable: u32,
        /// The least.
        least: u32,
    },
    /// S3: too few endpoints for topology, by percent.
    Panic {
        /// Ready endpoints.
        ready: u32,
        /// All endpoints.
        total: u32,
        /// The least percentage.
        percent: u8,
    },
    /// S4: a level as the policy and the labels make it.
    Level {
        /// The level.
        level: LevelKey,
        /// Its weight in the policy.
        weight: u32,
        /// Its share.
        share: Ratio,
        /// Endpoints that may take traffic.
        usable: u32,
        /// Endpoints that a drain keeps from new connections.
        draining: u32,
        /// Endpoints whatever their condition.
        total: u32,
    },
    /// S4 and S5: a level merged into the next outer one.
    Merged {
        /// The level.
        level: LevelKey,
        /// The next outer one.
        into: LevelKey,
        /// Endpoints of it that count as ready.
        usable: u32,
        /// Endpoints whatever their condition.
        total: u32,
        /// What it would need; none if a drain of clients merged it.
        need: Option<MinReady>,
    },
    /// S5: a level counts fewer endpoints than it has, until the recovery hold is over.
    Held {
        /// The level.
        level: LevelKey,
        /// What it has.
        usable: u32,
        /// What counts.
        counted: u32,
        /// When more count, milliseconds since 1970.
        until: i64,
    },
    /// S6: the share of an empty level moved.
    Emptied {
        /// The level.
        level: LevelKey,
        /// Its share.
        share: Ratio,
        /// Who got it; none if it went to all levels in proportion.
        to: Option<LevelKey>,
    },
    /// S7: what a level can carry: `min(1, overprovision x ready / total)`.
    Spill {
        /// The level.
        level: LevelKey,
        /// Ready endpoints.
        ready: u32,
        /// All its endpoints.
        total: u32,
        /// What it can carry, of all traffic.
        available: Ratio,
        /// Its share before.
        before: Ratio,
        /// What inner levels passed on and it accepted.
        accepted: Ratio,
        /// Its share after normalisation.
        after: Ratio,
    },
    /// S8: what may stay inside a level: `(1 + overload) x endpoints / demand`.
    Cap {
        /// The level.
        level: LevelKey,
        /// The domain's part of all usable endpoints.
        endpoints: Ratio,
        /// The domain's part of the demand.
        demand: Ratio,
        /// The most that may stay inside.
        cap: Ratio,
        /// What would have stayed inside.
        inside: Ratio,
        /// What goes outward from here.
        passed: Ratio,
    },
    /// S9: a zone's part of what the cap turned away: `max(0, endpoints - demand)`, in proportion.
    Spare {
        /// The zone; none for endpoints without one.
        zone: Option<Arc<str>>,
        /// The zone's part of all usable endpoints.
        endpoints: Ratio,
        /// The zone's part of the demand.
        demand: Ratio,
        /// What it gets of the outer levels' share.
        share: Ratio,
    },
    /// S9: what endpoints of one kind get.
    Each {
        /// Their level.
        level: LevelKey,
        /// How many they are.
        count: u32,
        /// What each gets.
        share: Ratio,
    },
    /// S9: an endpoint that is new grows.
    SlowStart {
        /// How many endpoints grow.
        endpoints: u32,
    },
    /// S10: the farthest level was thinned out.
    Subset {
        /// The level.
        level: LevelKey,
        /// How many endpoints stay.
        kept: u32,
        /// Of how many.
        of: u32,
    },
    /// S10: the weight of endpoints with one share.
    Weight {
        /// Their level.
        level: LevelKey,
        /// How many they are.
        count: u32,
        /// What each should get.
        share: Ratio,
        /// The weight of each.
        weight: u32,
    },
}
