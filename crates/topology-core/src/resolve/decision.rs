//! How a virtual server came about, for people to read.

mod note_text;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::reason::Reason;
use super::record::StageRecord;
use crate::hints::HintMode;
use crate::model::PolicyName;
use crate::policy::{Avoid, LevelKey, Mode, OnNoMatch, PolicySource};
use crate::quantise::QuantiseMethod;
use crate::ratio::Ratio;
use crate::scheduler::Scheduler;

/// How the real servers and weights of one virtual server came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What decided.
    pub source: PolicySource,
    /// The policy object that decided; none for every other source.
    pub policy: Option<PolicyName>,
    /// What else could have decided, and why it did not; the next best first.
    pub lost: Vec<Lost>,
    /// In which mode.
    pub mode: Mode,
    /// The levels, nearest first; a single one where no policy of ours decided.
    pub levels: Vec<LevelDecision>,
    /// The domains of this node that the policy, or an annotation beside it, keeps clients out of.
    pub avoided: Vec<Avoid>,
    /// Every endpoint of the port, by address and port, chosen or not.
    pub endpoints: Vec<EndpointDecision>,
    /// What was done out of the ordinary, in the order of the stages.
    pub notes: Vec<Note>,
    /// What each stage did, in their order.
    pub stages: Vec<StageRecord>,
    /// How the weights were found, and the picks in one cycle of `wrr`; none without real servers.
    pub quantised: Option<(QuantiseMethod, u64)>,
    /// Why no real server takes connections.
    pub refusal: Option<Refusal>,
    /// What clients see then.
    pub on_no_match: OnNoMatch,
}

/// A source that could have decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// What it is.
    pub source: PolicySource,
    /// The policy object; none for annotations, `topologyKeys` and hints.
    pub policy: Option<PolicyName>,
    /// Why it did not decide.
    pub why: LostBecause,
}

/// Why a source did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LostBecause {
    /// A stronger source did.
    Weaker,
    /// It is for other ports.
    OtherPort,
    /// It is for other client Nodes.
    OtherNode,
    /// Another of its kind has a higher priority.
    LowerPriority,
    /// Another of its kind is older.
    Younger,
    /// Another of its kind has a name that comes first.
    LaterName,
    /// It would refuse every client: no Node has a label of its levels.
    LevelUnknown,
    /// An annotation names another.
    NotNamed,
    /// The limits of a cluster policy do not allow it.
    NotAllowed,
    /// Annotations: they are not valid, and those that are say nothing that could decide.
    Invalid,
    /// Hints: some ready endpoint has none, so none counts.
    PartlyHinted,
    /// Hints: they name zones, and this Node has none.
    NodeWithoutZone,
    /// Hints: none names this Node or its zone.
    HintedElsewhere,
}

impl LostBecause {
    /// The name of the reason, stable, for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Weaker => "Weaker",
            Self::OtherPort => "OtherPort",
            Self::OtherNode => "OtherNode",
            Self::LowerPriority => "LowerPriority",
            Self::Younger => "Younger",
            Self::LaterName => "LaterName",
            Self::LevelUnknown => "LevelUnknown",
            Self::NotNamed => "NotNamed",
            Self::NotAllowed => "NotAllowed",
            Self::Invalid => "Invalid",
            Self::PartlyHinted => "PartlyHinted",
            Self::NodeWithoutZone => "NodeWithoutZone",
            Self::HintedElsewhere => "HintedElsewhere",
        }
    }
}

impl fmt::Display for LostBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weaker => "a stronger source decides",
            Self::OtherPort => "it is for other ports",
            Self::OtherNode => "it is for other client Nodes",
            Self::LowerPriority => "another has a higher priority",
            Self::Younger => "another of the same priority is older",
            Self::LaterName => "another of the same priority and age has a name that comes first",
            Self::LevelUnknown => {
                "no Node has a label of its levels, so it would refuse every client"
            }
            Self::NotNamed => "the Service's annotation names another",
            Self::NotAllowed => "the owner limits of a cluster policy do not allow it",
            Self::Invalid => "they are not valid, and nothing is left of them that could decide",
            Self::PartlyHinted => "a ready endpoint has no hint, so none counts",
            Self::NodeWithoutZone => "they name zones, and this Node has no zone",
            Self::HintedElsewhere => "none names this Node or its zone",
        })
    }
}

/// One level of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelDecision {
    /// The level.
    pub key: LevelKey,
    /// Its weight in the policy.
    pub configured: u32,
    /// Its share as the policy says.
    pub desired: Ratio,
    /// Its share once empty levels have given theirs away.
    pub share: Ratio,
    /// Its share as the weights give it.
    pub achieved: Ratio,
    /// Endpoints that take traffic.
    pub usable: u32,
    /// Endpoints that a drain keeps from new connections.
    pub draining: u32,
    /// Endpoints whatever their condition.
    pub total: u32,
}

/// What became of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointDecision {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its Node, if the slice names one.
    pub node: Option<Arc<str>>,
    /// Its zone, from its Node or else from the slice.
    pub zone: Option<Arc<str>>,
    /// Whether it terminates; it may serve, and be chosen, all the same.
    pub terminating: bool,
    /// Its level, if it is in one.
    pub level: Option<LevelKey>,
    /// Its weight; 0 if it is not chosen.
    pub weight: u32,
    /// Its share of new connections as the weights give it.
    pub share: Ratio,
    /// Why.
    pub reason: Reason,
}

impl EndpointDecision {
    /// Whether it is a real server, if only to finish its connections.
    pub const fn is_chosen(&self) -> bool {
        self.reason.is_real_server()
    }
}

impl Decision {
    /// Endpoints that are no real servers although they exist and do not terminate, in the order of address and port.
    pub fn unchosen(&self) -> impl Iterator<Item = (IpAddr, u16)> {
        let left = self
            .endpoints
            .iter()
            .filter(|endpoint| !endpoint.is_chosen() && !endpoint.terminating);
        left.map(|endpoint| (endpoint.address, endpoint.port))
    }
}

/// Why a virtual server has no real servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The port has no endpoints.
    NoEndpoints,
    /// None is ready, and none serves while it terminates.
    NoneReady,
    /// None of the usable ones is on this node, and the traffic policy is Local.
    NoneLocal,
    /// None of the usable ones is in the levels of a hard policy.
    NoMatch,
    /// This Node is unknown, so a hard policy matches nothing.
    OwnNodeUnknown,
    /// Every usable one is drained, and the drain is forced.
    Drained,
    /// Every usable one is in a domain that the policy avoids.
    Avoided,
    /// The levels of the Service's own hard policy cannot be read, and there is no earlier version of them.
    BoundaryUnread,
}

impl Refusal {
    /// The name of the refusal, stable, for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoEndpoints => "NoEndpoints",
            Self::NoneReady => "NoneReady",
            Self::NoneLocal => "NoneLocal",
            Self::NoMatch => "NoMatch",
            Self::OwnNodeUnknown => "OwnNodeUnknown",
            Self::Drained => "Drained",
            Self::Avoided => "Avoided",
            Self::BoundaryUnread => "BoundaryUnread",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEndpoints => "no endpoints",
            Self::NoneReady => "no endpoint is ready",
            Self::NoneLocal => "no usable endpoint on this node, traffic policy Local",
            Self::NoMatch => "no usable endpoint in the levels of the hard policy",
            Self::OwnNodeUnknown => "this Node is unknown, a hard policy matches nothing",
            Self::Drained => "every usable endpoint is drained, and the drain is forced",
            Self::Avoided => "every usable endpoint is in a domain that the policy avoids",
            Self::BoundaryUnread => "the hard policy cannot be read, so it matches nothing",
        })
    }
}

/// Something a stage did out of the ordinary; the text is what people read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// S4: this Node is unknown, so the policy cannot be applied.
    OwnNodeUnknown,
    /// S0: no endpoint is ready; those that terminate but serve are used.
    ServingTerminating,
    /// The annotation asks for a smaller cap than an administrator lets owners have.
    Clipped {
        /// The cap it asks for, in percent.
        asked: u32,
        /// The cap it gets.
        given: u32,
        /// The policy object that sets the limit.
        by: PolicyName,
    },
    /// The mode of the Service's own policy is none of those that an administrator lets owners have.
    NotAllowed {
        /// The mode.
        asked: Mode,
        /// The policy object that sets the limit.
        by: PolicyName,
    },
    /// The annotation names a policy object that does not exist in the namespace.
    NoSuchPolicy {
        /// The name.
        name: Arc<str>,
    },
    /// The Service asks for hints, and no endpoint has any.
    HintsMissing {
        /// What it asks for.
        mode: HintMode,
    },
    /// An annotation or a key of `topologyKeys` is not valid and does not count; the others do.
    PartlyInvalid,
    /// The levels of the Service's own hard policy cannot be read, and there is no earlier version of them.
    BoundaryUnread,
    /// The levels of the Service's own hard policy cannot be read; what the last good version asks stays.
    LastGoodStays,
    /// S1: a drain is ignored, because no other endpoint remains.
    DrainIgnored {
        /// Its name.
        drain: Arc<str>,
    },
    /// S1: a drain is not for Services with a hard policy, as this one is.
    DrainSpares {
        /// Its name.
        drain: Arc<str>,
    },
    /// S1: a drain covers this node or an endpoint on it, and traffic policy Local leaves nothing to shift.
    DrainLocal {
        /// Its name.
        drain: Arc<str>,
    },
    /// S4: no Node has the label of a level, or of what is avoided.
    LevelUnknown {
        /// The level.
        level: LevelKey,
        /// What was most likely meant, if that can be told.
        meant: Option<String>,
    },
    /// S4: a nearer level takes every endpoint that could be in this one.
    LevelUnreachable {
        /// The level.
        level: LevelKey,
        /// The level before it that takes them.
        by: LevelKey,
    },
    /// S2: a domain that should be avoided is used, because no other endpoint remains.
    AvoidIgnored {
        /// The key of the domain.
        key: LevelKey,
    },
    /// S2: annotations name domains to avoid, and traffic policy Local leaves none to avoid.
    AvoidLocal,
    /// S3: too few endpoints are usable or ready, all are alike.
    Panic,
    /// S5: a level has too few ready endpoints and merged into the next outer one.
    Merged {
        /// The level.
        level: LevelKey,
        /// The next outer one.
        into: LevelKey,
    },
    /// S8: the cap turned traffic away from a level.
    Capped {
        /// The level.
        level: LevelKey,
        /// The most that may stay inside.
        cap: Ratio,
    },
    /// S10: the kernel does not have the scheduler that is asked for.
    SchedulerMissing {
        /// The scheduler.
        asked: Scheduler,
    },
    /// S10: no weights that the scheduler tells apart are near enough to the shares.
    WeightClamped {
        /// The scheduler.
        scheduler: Scheduler,
    },
    /// S6: a level without endpoints gave its share away.
    EmptyLevel {
        /// The level.
        level: LevelKey,
        /// Its share.
        share: Ratio,
        /// Who got it; none if it went to all levels in proportion.
        to: Option<LevelKey>,
    },
}

impl Note {
    /// The name of the note, stable, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OwnNodeUnknown => "OwnNodeUnknown",
            Self::ServingTerminating => "ServingTerminating",
            Self::Clipped { .. } => "Clipped",
            Self::NotAllowed { .. } => "NotAllowed",
            Self::NoSuchPolicy { .. } => "NoSuchPolicy",
            Self::HintsMissing { .. } => "HintsMissing",
            Self::PartlyInvalid => "PartlyInvalid",
            Self::BoundaryUnread => "BoundaryUnread",
            Self::LastGoodStays => "LastGoodStays",
            Self::DrainIgnored { .. } => "DrainIgnored",
            Self::DrainSpares { .. } => "DrainSpares",
            Self::DrainLocal { .. } => "DrainLocal",
            Self::LevelUnknown { .. } => "LevelUnknown",
            Self::LevelUnreachable { .. } => "LevelUnreachable",
            Self::AvoidIgnored { .. } => "AvoidIgnored",
            Self::AvoidLocal => "AvoidLocal",
            Self::Panic => "Panic",
            Self::Merged { .. } => "Merged",
            Self::Capped { .. } => "Capped",
            Self::SchedulerMissing { .. } => "SchedulerMissing",
            Self::WeightClamped { .. } => "WeightClamped",
            Self::EmptyLevel { .. } => "EmptyLevel",
        }
    }

    /// The number of the stage, 0 to 11.
    pub const fn stage(&self) -> u8 {
        match self {
            Self::Clipped { .. }
            | Self::NotAllowed { .. }
            | Self::NoSuchPolicy { .. }
            | Self::HintsMissing { .. }
            | Self::PartlyInvalid
            | Self::BoundaryUnread
            | Self::LastGoodStays
            | Self::ServingTerminating => 0,
            Self::DrainIgnored { .. } | Self::DrainSpares { .. } | Self::DrainLocal { .. } => 1,
            Self::AvoidIgnored { .. } | Self::AvoidLocal => 2,
            Self::Panic => 3,
            Self::Merged { .. } => 5,
            Self::Capped { .. } => 8,
            Self::SchedulerMissing { .. } | Self::WeightClamped { .. } => 10,
            Self::OwnNodeUnknown | Self::LevelUnknown { .. } | Self::LevelUnreachable { .. } => 4,
            Self::EmptyLevel { .. } => 6,
        }
    }
}
