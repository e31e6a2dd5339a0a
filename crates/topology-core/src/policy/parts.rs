//! The options of a policy.

use std::sync::Arc;

use super::LevelKey;

/// The meaning of a level's weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weighting {
    /// The share of the whole level, for any number of endpoints in it.
    #[default]
    TierShare,
    /// The weight of each endpoint in it.
    EndpointBias,
}

/// Where the share of a level without endpoints goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmptyTier {
    /// To the next outer level with endpoints, otherwise to the nearest inner one.
    #[default]
    Cascade,
    /// To all levels with endpoints, in proportion.
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
    /// As configured: zone and percent. For other levels a zone's percentage is divided equally among its Nodes.
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

/// How traffic above the cap is divided over the outer levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Residual {
    /// To zones with a larger share of the endpoints than of the demand.
    #[default]
    Capacity,
    /// To all endpoints equally.
    Even,
}

/// A domain whose endpoints should not be used: this node's own value of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Avoid {
    /// What an endpoint should not have in common with this node.
    pub key: LevelKey,
    /// Whether the endpoints are used if no others remain.
    pub soft: bool,
}

/// Whether endpoints in an avoided domain may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AvoidMode {
    /// Never.
    Hard,
    /// If no others remain.
    Soft,
}

/// What clients get if a hard policy matches no endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnNoMatch {
    /// A refusal: TCP reset or ICMP port unreachable.
    #[default]
    Reject,
    /// No reply.
    Drop,
}

impl OnNoMatch {
    /// The value in annotations and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Drop => "drop",
        }
    }
}
