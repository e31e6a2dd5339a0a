//! The choices inside a policy.

use std::sync::Arc;

use super::LevelKey;

/// What the number beside a level means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weighting {
    /// The share of the whole level, however many endpoints are in it.
    #[default]
    TierShare,
    /// The weight of each endpoint in it.
    EndpointBias,
}

/// Where the share of a level without endpoints goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmptyTier {
    /// To the next outer level that has endpoints, else to the nearest inner one.
    #[default]
    Cascade,
    /// To all levels that have endpoints, in proportion.
    Renormalize,
}

/// How the demand of a domain is estimated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Demand {
    /// By its ready Nodes.
    #[default]
    NodeCount,
    /// By the allocatable CPU of its ready Nodes.
    AllocatableCpu,
    /// As stated: zone and percent. A zone's percent is spread evenly over its Nodes for other levels.
    Static(Vec<(Arc<str>, u32)>),
}

/// The kinds of [`Demand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DemandKind {
    /// [`Demand::NodeCount`].
    NodeCount,
    /// [`Demand::AllocatableCpu`].
    AllocatableCpu,
    /// [`Demand::Static`].
    Static,
}

/// How what the overload cap turns away is spread over the outer levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Residual {
    /// To zones that have more of the endpoints than of the demand.
    #[default]
    Capacity,
    /// To all endpoints alike.
    Even,
}

/// A domain whose endpoints are not desired: this node's own value of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Avoid {
    /// What the endpoint must not share with this node.
    pub key: LevelKey,
    /// Whether it gives way where nothing else remains.
    pub soft: bool,
}

/// Whether endpoints in a domain that is avoided may be used at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AvoidMode {
    /// Never.
    Hard,
    /// Where nothing else remains.
    Soft,
}

/// What clients see where a hard policy matches nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnNoMatch {
    /// A refusal at once: TCP reset or ICMP port unreachable.
    #[default]
    Reject,
    /// Silence.
    Drop,
}

impl OnNoMatch {
    /// The word for it in annotations and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Drop => "drop",
        }
    }
}
