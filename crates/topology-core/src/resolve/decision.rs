//! The explanation of a virtual server.

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

/// Explains the real servers and weights of one virtual server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The source that decided.
    pub source: PolicySource,
    /// The policy object that decided; `None` for other sources.
    pub policy: Option<PolicyName>,
    /// Sources that did not decide, with reasons; the strongest first. Of many policy objects of one kind only the first
    /// are listed, and a note has the number of the others. Virtual servers of one port share the list.
    pub lost: Arc<[Lost]>,
    /// The mode of the policy.
    pub mode: Mode,
    /// The levels, nearest first; a single one if none of our policies decides.
    pub levels: Vec<LevelDecision>,
    /// Domains of this node that the policy, or an annotation in addition to it, avoids.
    pub avoided: Vec<Avoid>,
    /// All endpoints of the port, chosen or not, sorted by address and port.
    pub endpoints: Vec<EndpointDecision>,
    /// Exceptional events, in the order of the stages.
    pub notes: Vec<Note>,
    /// What each stage did, in order.
    pub stages: Vec<StageRecord>,
    /// How the weights were found, and the picks in one cycle of `wrr`; `None` without real servers.
    pub quantised: Option<(QuantiseMethod, u64)>,
    /// Why no real server gets connections.
    pub refusal: Option<Refusal>,
    /// What clients get if there is a refusal.
    pub on_no_match: OnNoMatch,
}

/// A source that did not decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The source.
    pub source: PolicySource,
    /// The policy object; `None` for annotations, `topologyKeys` and hints.
    pub policy: Option<PolicyName>,
    /// The reason.
    pub why: LostBecause,
}

/// Why a source did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LostBecause {
    /// A stronger source decided.
    Weaker,
    /// It applies to other ports.
    OtherPort,
    /// It applies to other client Nodes.
    OtherNode,
    /// Another one of its kind has a higher priority.
    LowerPriority,
    /// Another one of its kind is older.
    Younger,
    /// Another one of its kind has a name that comes first.
    LaterName,
    /// No Node has a label of its levels, so it would refuse every client.
    LevelUnknown,
    /// An annotation names another one.
    NotNamed,
    /// The owner limits of a cluster policy do not permit it.
    NotAllowed,
    /// Annotations: none of the valid ones can decide.
    Invalid,
    /// Hints: a ready endpoint has none, so none counts.
    PartlyHinted,
    /// Hints: they name zones, and this Node has no zone.
    NodeWithoutZone,
    /// Hints: none of the endpoints that are not excluded names this Node or its zone.
    HintedElsewhere,
}

impl LostBecause {
    /// A stable code of the reason, for programs.
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
            Self::HintedElsewhere => "none left names this Node or its zone",
        })
    }
}

/// A level in a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelDecision {
    /// What its endpoints share with this node.
    pub key: LevelKey,
    /// Its weight in the policy.
    pub configured: u32,
    /// Its share in the policy.
    pub desired: Ratio,
    /// Its share after empty levels have passed theirs on.
    pub share: Ratio,
    /// The share that the weights result in.
    pub achieved: Ratio,
    /// Endpoints that get traffic.
    pub usable: u32,
    /// Endpoints that a drain keeps from new connections.
    pub draining: u32,
    /// All endpoints.
    pub total: u32,
}

/// An endpoint in a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointDecision {
    /// Address of the endpoint.
    pub address: IpAddr,
    /// Port of the endpoint.
    pub port: u16,
    /// Its Node, if the slice names one.
    pub node: Option<Arc<str>>,
    /// Its zone, from its Node or otherwise from the slice.
    pub zone: Option<Arc<str>>,
    /// Whether it terminates. It may still serve, and be chosen.
    pub terminating: bool,
    /// Its level, if any.
    pub level: Option<LevelKey>,
    /// Its weight; 0 if it is not chosen.
    pub weight: u32,
    /// The share of new connections that its weight results in.
    pub share: Ratio,
    /// Why it was chosen or not.
    pub reason: Reason,
}

impl EndpointDecision {
    /// Whether it is a real server, even if only to finish its connections.
    pub const fn is_chosen(&self) -> bool {
        self.reason.is_real_server()
    }
}

impl Decision {
    /// Endpoints that exist and do not terminate, but are not real servers, sorted by address and port.
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
    /// No endpoint is ready, and none serves while it terminates.
    NoneReady,
    /// No usable endpoint is on this node, and the traffic policy is Local.
    NoneLocal,
    /// No usable endpoint is in the levels of a hard policy.
    NoMatch,
    /// This Node is unknown, so a hard policy matches nothing.
    OwnNodeUnknown,
    /// Every usable endpoint is drained, and the drain is forced.
    Drained,
    /// Every usable endpoint is in a domain that the policy avoids.
    Avoided,
    /// The levels of the Service's own hard policy cannot be parsed, and no earlier version is known.
    BoundaryUnread,
}

impl Refusal {
    /// A stable code of the refusal, for programs.
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

/// An exceptional event in a stage. Prints the text for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// S4: this Node is unknown, so the policy cannot be applied.
    OwnNodeUnknown,
    /// S0: no endpoint is ready; those that terminate but serve are used.
    ServingTerminating,
    /// The annotation requests a smaller cap than the owner limits permit.
    Clipped {
        /// The requested cap, in percent.
        asked: u32,
        /// The cap that is used.
        given: u32,
        /// The policy object with the limits.
        by: PolicyName,
    },
    /// The owner limits do not permit the mode of the Service's own policy.
    NotAllowed {
        /// The mode.
        asked: Mode,
        /// The policy object with the limits.
        by: PolicyName,
    },
    /// The annotation names a policy object that does not exist in the namespace.
    NoSuchPolicy {
        /// The name.
        name: Arc<str>,
    },
    /// The Service requests hints, and no endpoint has any.
    HintsMissing {
        /// The requested hints.
        mode: HintMode,
    },
    /// More policy objects select the Service and do not decide than are listed.
    PoliciesNotListed {
        /// The number of those that are not listed.
        count: usize,
    },
    /// An annotation or a key of `topologyKeys` is not valid and is ignored; the others count.
    PartlyInvalid,
    /// The levels of the Service's own hard policy cannot be parsed, and no earlier version is known.
    BoundaryUnread,
    /// The levels of the Service's own hard policy cannot be parsed; the last valid version stays in force.
    LastGoodStays,
    /// S1: a drain is ignored, because no other endpoint remains.
    DrainIgnored {
        /// The drain.
        drain: Arc<str>,
    },
    /// S1: a drain does not apply to Services with a hard policy.
    DrainSpares {
        /// The drain.
        drain: Arc<str>,
    },
    /// S1: a drain covers this node or an endpoint on it, but with traffic policy Local there is no other endpoint.
    DrainLocal {
        /// The drain.
        drain: Arc<str>,
    },
    /// S4: no Node has the label of a level or of an avoided domain.
    LevelUnknown {
        /// The level.
        level: LevelKey,
        /// The level that was most likely meant, if there is a similar one.
        similar: Option<String>,
    },
    /// S4: a nearer level contains every endpoint that could be in this one.
    LevelUnreachable {
        /// The level.
        level: LevelKey,
        /// The level before it that contains them.
        by: LevelKey,
    },
    /// S2: an avoided domain is used, because no other endpoint remains.
    AvoidIgnored {
        /// The key of the domain.
        key: LevelKey,
    },
    /// S2: annotations avoid domains, but with traffic policy Local there is no other endpoint.
    AvoidLocal,
    /// S3: too few endpoints are usable or ready, so all get the same share.
    Panic,
    /// S5: a level has too few ready endpoints and merged into the next outer one.
    Merged {
        /// The level.
        level: LevelKey,
        /// The next outer one.
        into: LevelKey,
    },
    /// S8: the cap keeps traffic away from a level.
    Capped {
        /// The level.
        level: LevelKey,
        /// The largest share that may stay inside.
        cap: Ratio,
    },
    /// S10: the kernel does not have the requested scheduler.
    SchedulerMissing {
        /// The scheduler.
        asked: Scheduler,
    },
    /// S10: no weights that the scheduler distinguishes are within the tolerance.
    WeightClamped {
        /// The scheduler.
        scheduler: Scheduler,
    },
    /// S6: a level without endpoints passed on its share.
    EmptyLevel {
        /// The level.
        level: LevelKey,
        /// Its share.
        share: Ratio,
        /// The level that got it; `None` if all levels got a part.
        to: Option<LevelKey>,
    },
}

impl Note {
    /// A stable code of the note, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OwnNodeUnknown => "OwnNodeUnknown",
            Self::ServingTerminating => "ServingTerminating",
            Self::Clipped { .. } => "Clipped",
            Self::NotAllowed { .. } => "NotAllowed",
            Self::NoSuchPolicy { .. } => "NoSuchPolicy",
            Self::HintsMissing { .. } => "HintsMissing",
            Self::PoliciesNotListed { .. } => "PoliciesNotListed",
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
            | Self::PoliciesNotListed { .. }
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
