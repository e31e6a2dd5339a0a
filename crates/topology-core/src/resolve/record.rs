//! Records what each stage did: how many endpoints could get traffic before and after it, and the
//! calculation.

mod text;

use std::sync::Arc;

use crate::policy::{LevelKey, MinReady};
use crate::ratio::Ratio;

/// What a stage did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRecord {
    /// Number of the stage, 0 to 11.
    pub number: u8,
    /// Name of the stage.
    pub name: &'static str,
    /// Endpoints that could get traffic before it.
    pub before: u32,
    /// Endpoints that could get traffic after it.
    pub after: u32,
    /// The calculation, one fact per line; empty if the stage had nothing to do.
    pub facts: Vec<Fact>,
}

/// A line of the calculation, with exact values. Prints the text for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// S1: a drain excludes endpoints, or a part of their traffic while it ramps.
    Drained {
        /// The drain.
        drain: Arc<str>,
        /// Number of endpoints that it covers.
        endpoints: u32,
        /// The part of the traffic that they still get.
        remaining: Ratio,
    },
    /// S2: a domain of this node is avoided.
    Avoided {
        /// The key of the domain.
        key: LevelKey,
        /// Number of excluded endpoints.
        endpoints: u32,
    },
    /// S1 and S2: hints are evaluated again without the excluded endpoints.
    HintsAgain {
        /// Number of endpoints that they choose now.
        usable: u32,
    },
    /// S3: too few endpoints for topology, by number.
    TooFew {
        /// Usable endpoints.
        usable: u32,
        /// The required number.
        least: u32,
    },
    /// S3: too few endpoints for topology, by percentage.
    Panic {
        /// Ready endpoints.
        ready: u32,
        /// All endpoints.
        total: u32,
        /// The required percentage.
        percent: u8,
    },
    /// S4: a level, from the policy and the labels.
    Level {
        /// The level.
        level: LevelKey,
        /// Its weight in the policy.
        weight: u32,
        /// Its share.
        share: Ratio,
        /// Endpoints that may get traffic.
        usable: u32,
        /// Endpoints that a drain keeps from new connections.
        draining: u32,
        /// All endpoints.
        total: u32,
    },
    /// S4 and S5: a level merges into the next outer one.
    Merged {
        /// The level.
        level: LevelKey,
        /// The next outer one.
        into: LevelKey,
        /// Its endpoints that count as ready.
        usable: u32,
        /// All its endpoints.
        total: u32,
        /// The required number; `None` if a drain of clients merged it.
        need: Option<MinReady>,
    },
    /// S5: a level counts fewer endpoints than it has, until the recovery hold is over.
    Held {
        /// The level.
        level: LevelKey,
        /// Its usable endpoints.
        usable: u32,
        /// The endpoints that count.
        counted: u32,
        /// When more will count, in milliseconds since 1970.
        until: i64,
    },
    /// S6: an empty level passes on its share.
    Emptied {
        /// The level.
        level: LevelKey,
        /// Its share.
        share: Ratio,
        /// The level that gets it; `None` if all levels get a part.
        to: Option<LevelKey>,
    },
    /// S7: the share that a level can carry: `min(1, overprovision x ready / total)`.
    Spill {
        /// The level.
        level: LevelKey,
        /// Ready endpoints.
        ready: u32,
        /// All its endpoints.
        total: u32,
        /// The share that it can carry.
        available: Ratio,
        /// Its share before.
        before: Ratio,
        /// The part that it accepts of what inner levels pass on.
        accepted: Ratio,
        /// Its share after normalisation.
        after: Ratio,
    },
    /// S8: the share that may stay inside a level: `(1 + overload) x endpoints / demand`.
    Cap {
        /// The level.
        level: LevelKey,
        /// The domain's part of all usable endpoints.
        endpoints: Ratio,
        /// The domain's part of the demand.
        demand: Ratio,
        /// The largest share that may stay inside.
        cap: Ratio,
        /// The share inside without the cap.
        inside: Ratio,
        /// The share that moves outward from here.
        passed: Ratio,
    },
    /// S9: a zone's part of the traffic above the cap: `max(0, endpoints - demand)`, in proportion.
    Spare {
        /// The zone; `None` for endpoints without one.
        zone: Option<Arc<str>>,
        /// The zone's part of all usable endpoints.
        endpoints: Ratio,
        /// The zone's part of the demand.
        demand: Ratio,
        /// Its part of the outer levels' share.
        share: Ratio,
    },
    /// S9: the share of endpoints of one kind.
    Each {
        /// Their level.
        level: LevelKey,
        /// Number of endpoints.
        count: u32,
        /// The share of each endpoint.
        share: Ratio,
    },
    /// S9: new endpoints get less than their share.
    SlowStart {
        /// Number of new endpoints.
        endpoints: u32,
    },
    /// S10: the farthest level is thinned out.
    Subset {
        /// The level.
        level: LevelKey,
        /// Number of endpoints that stay.
        kept: u32,
        /// Number of endpoints before.
        of: u32,
    },
    /// S10: the weight of endpoints with the same share.
    Weight {
        /// Their level.
        level: LevelKey,
        /// Number of endpoints.
        count: u32,
        /// The desired share of each.
        share: Ratio,
        /// The weight of each.
        weight: u32,
    },
}
