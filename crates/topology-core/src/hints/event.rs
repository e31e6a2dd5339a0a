//! What the Service's owner is told.

use std::fmt;

use crate::model::Family;

/// An event on the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintEvent {
    /// Normal: its endpoints have hints now.
    Enabled {
        /// The family of the endpoints.
        family: Family,
    },
    /// Warning: its endpoints have no hints.
    Disabled {
        /// The family of the endpoints.
        family: Family,
        /// Why not.
        trouble: HintProblem,
    },
}

/// Why there are no Topology Aware Hints.
///
/// The KEP knows one more, that nothing was allocated; it cannot happen, since every ready endpoint gets a hint or one
/// of these is said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HintProblem {
    /// See [`Zones::of`](super::Zones::of); also said where only one zone has ready Nodes.
    #[error(
        "the Nodes do not say enough: each needs a zone and allocatable CPU, in two zones at least"
    )]
    Nodes,
    /// Fewer ready endpoints than zones.
    #[error("{endpoints} ready endpoints are too few for {zones} zones")]
    TooFewEndpoints {
        /// Ready endpoints.
        endpoints: usize,
        /// Zones with CPU.
        zones: usize,
    },
    /// However they are dealt out, some zone gets 20 % more than its endpoints' share.
    #[error(
        "{endpoints} ready endpoints cannot be dealt out without overloading a zone by more than 20 %"
    )]
    Overload {
        /// Ready endpoints.
        endpoints: usize,
    },
    /// A ready endpoint has no zone.
    #[error("a ready endpoint has no zone")]
    EndpointWithoutZone,
    /// The annotation was removed or changed.
    #[error("the annotation no longer asks for them")]
    NoLongerAsked,
}

impl HintProblem {
    /// The name of the trouble, stable, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Nodes => "Nodes",
            Self::TooFewEndpoints { .. } => "TooFewEndpoints",
            Self::Overload { .. } => "Overload",
            Self::EndpointWithoutZone => "EndpointWithoutZone",
            Self::NoLongerAsked => "NoLongerAsked",
        }
    }
}

impl HintEvent {
    /// The reason of the event, as Kubernetes names it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Enabled { .. } => "TopologyAwareHintsEnabled",
            Self::Disabled { .. } => "TopologyAwareHintsDisabled",
        }
    }

    /// The type of the event: `Normal` or `Warning`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Enabled { .. } => "Normal",
            Self::Disabled { .. } => "Warning",
        }
    }
}

impl fmt::Display for HintEvent {
    /// The message, which ends with the address type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enabled { family } => write!(
                f,
                "endpoints have topology aware hints, addressType {family}"
            ),
            Self::Disabled { family, trouble } => {
                write!(
                    f,
                    "no topology aware hints: {trouble}, addressType {family}"
                )
            }
        }
    }
}
