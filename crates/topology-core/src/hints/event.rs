//! The Events about hints on a Service.

use std::fmt;

use crate::model::Family;

/// An Event on the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintEvent {
    /// Normal: the Service's endpoints have hints now.
    Enabled {
        /// The family of the endpoints.
        family: Family,
    },
    /// Warning: the Service's endpoints have no hints.
    Disabled {
        /// The family of the endpoints.
        family: Family,
        /// The reason.
        problem: HintProblem,
    },
}

/// Why there are no Topology Aware Hints.
///
/// The KEP has one more reason, that nothing was allocated. It cannot occur: every ready endpoint gets a hint, or there
/// is one of these reasons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HintProblem {
    /// See [`Zones::of`](super::Zones::of). Also if only one zone has ready Nodes.
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
    /// In every distribution some zone gets 20 % more than its endpoints' share.
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
    NoLongerRequested,
}

impl HintProblem {
    /// A stable code of the problem, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Nodes => "Nodes",
            Self::TooFewEndpoints { .. } => "TooFewEndpoints",
            Self::Overload { .. } => "Overload",
            Self::EndpointWithoutZone => "EndpointWithoutZone",
            Self::NoLongerRequested => "NoLongerRequested",
        }
    }
}

impl HintEvent {
    /// The reason of the Event, as in Kubernetes.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Enabled { .. } => "TopologyAwareHintsEnabled",
            Self::Disabled { .. } => "TopologyAwareHintsDisabled",
        }
    }

    /// The type of the Event: `Normal` or `Warning`.
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
            Self::Disabled { family, problem } => {
                write!(
                    f,
                    "no topology aware hints: {problem}, addressType {family}"
                )
            }
        }
    }
}
