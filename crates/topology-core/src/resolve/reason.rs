//! Why an endpoint was chosen or not.

use std::fmt;

/// Why an endpoint was chosen or not. Prints the text for users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is in a level of the policy that has a share.
    InLevel,
    /// Every ready endpoint is used.
    Ready,
    /// It is on this node and the traffic policy is Local.
    Local,
    /// Its hints name this node.
    NodeHint,
    /// Its hints name this node's zone.
    ZoneHint,
    /// No endpoint is ready, so endpoints that terminate but still serve are used.
    ServingTerminating,
    /// It is not ready.
    NotReady,
    /// It is terminating while others are ready.
    Terminating,
    /// Its server closed its connection to the agent of this node.
    Disconnected,
    /// It is on another node and the traffic policy is Local.
    NotLocal,
    /// Its hints name other Nodes, and those of another endpoint name this one.
    HintedElsewhere,
    /// It is in no level of the policy, and the policy has no `*`.
    OutsideLevels,
    /// Its level has no share while nearer levels have endpoints.
    NearerLevelTakesAll,
    /// This Node is unknown, so a hard policy matches nothing.
    OwnNodeUnknown,
    /// It is in a drained domain and finishes its connections.
    Drained,
    /// It is in a drained domain and still gets a part of its share.
    Draining,
    /// It is in a domain that the policy avoids.
    Avoided,
    /// Its level counts more endpoints only after the recovery hold.
    Recovering,
    /// Its zone has no more endpoints than its own demand needs.
    ZoneFull,
    /// Other endpoints of its level are enough.
    Subset,
    /// Its address can never be a real server: loopback, link-local, multicast or of the wrong family.
    BadAddress,
}

impl Reason {
    /// Whether the endpoint is a real server: it gets traffic, or finishes its connections.
    pub const fn is_real_server(self) -> bool {
        self.is_chosen() || matches!(self, Self::Drained)
    }

    /// Whether the endpoint gets traffic.
    pub const fn is_chosen(self) -> bool {
        match self {
            Self::InLevel
            | Self::Ready
            | Self::Local
            | Self::NodeHint
            | Self::ZoneHint
            | Self::ServingTerminating
            | Self::Draining => true,
            Self::NotReady
            | Self::Terminating
            | Self::Disconnected
            | Self::NotLocal
            | Self::HintedElsewhere
            | Self::OutsideLevels
            | Self::NearerLevelTakesAll
            | Self::OwnNodeUnknown
            | Self::Drained
            | Self::Avoided
            | Self::Recovering
            | Self::ZoneFull
            | Self::Subset
            | Self::BadAddress => false,
        }
    }

    /// A stable code of the reason, for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::InLevel => "InLevel",
            Self::Ready => "Ready",
            Self::Local => "Local",
            Self::NodeHint => "NodeHint",
            Self::ZoneHint => "ZoneHint",
            Self::ServingTerminating => "ServingTerminating",
            Self::NotReady => "NotReady",
            Self::Terminating => "Terminating",
            Self::Disconnected => "Disconnected",
            Self::NotLocal => "NotLocal",
            Self::HintedElsewhere => "HintedElsewhere",
            Self::OutsideLevels => "OutsideLevels",
            Self::NearerLevelTakesAll => "NearerLevelTakesAll",
            Self::OwnNodeUnknown => "OwnNodeUnknown",
            Self::Drained => "Drained",
            Self::Draining => "Draining",
            Self::Avoided => "Avoided",
            Self::Recovering => "Recovering",
            Self::ZoneFull => "ZoneFull",
            Self::Subset => "Subset",
            Self::BadAddress => "BadAddress",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InLevel => "in a level that has a share",
            Self::Ready => "every ready endpoint is used",
            Self::Local => "on this node, traffic policy Local",
            Self::NodeHint => "hinted for this node",
            Self::ZoneHint => "hinted for this zone",
            Self::ServingTerminating => "terminating but serving, none is ready",
            Self::NotReady => "not ready",
            Self::Terminating => "terminating",
            Self::Disconnected => "its server closed its connection to the agent",
            Self::NotLocal => "not on this node, traffic policy Local",
            Self::HintedElsewhere => "hinted for elsewhere",
            Self::OutsideLevels => "in none of the policy's levels",
            Self::NearerLevelTakesAll => "nearer levels take all",
            Self::OwnNodeUnknown => "this Node is unknown, a hard policy matches nothing",
            Self::Drained => "in a drained domain, finishes its connections",
            Self::Draining => "in a domain that is being drained",
            Self::Avoided => "in a domain that the policy avoids",
            Self::Recovering => "its level grows again after the recovery hold",
            Self::ZoneFull => "its zone has no endpoints to spare",
            Self::Subset => "others of its level are enough",
            Self::BadAddress => "its address can never be a real server",
        })
    }
}
