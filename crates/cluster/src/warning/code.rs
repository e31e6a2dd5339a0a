//! One word for each kind of warning, stable, for programs; `docs/messages.md` has an entry for each.

use crate::object::Kind;

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A file, or a part of it that is no object.
    File,
    /// A collection of objects that the API server does not give.
    Input,
    /// A list that lacks too much to be believed at once.
    ListDoubted,
    /// A map of the Nodes that cannot stand for them.
    MapUnfit,
    /// An object that uses a label which is not known of every Node yet.
    LabelUnread,
    /// An object as a whole.
    Object,
    /// A field that Kubernetes knows too.
    Field,
    /// A Node that claims an address inside a Service range.
    NodeClaim,
    /// Annotations of ours that are not used.
    TopologyInvalid,
    /// Annotations of ours on a Service that no node proxy serves.
    NoEffect,
    /// `spec.topologyKeys`.
    TopologyKeysInvalid,
    /// A `TopologyPolicy` or `ClusterTopologyPolicy`.
    PolicyInvalid,
    /// A policy that selects nothing.
    PolicyIdle,
    /// A level, or what is avoided, whose label no Node has.
    LevelUnknown,
    /// A `TopologyDrain`.
    DrainInvalid,
    /// A drain of domains that nothing is in.
    DrainIdle,
    /// A drain whose time is over.
    DrainEnded,
}

impl Code {
    /// The word for it in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "File",
            Self::Input => "Input",
            Self::ListDoubted => "ListDoubted",
            Self::MapUnfit => "MapUnfit",
            Self::LabelUnread => "LabelUnread",
            Self::Object => "Object",
            Self::Field => "Field",
            Self::NodeClaim => "NodeClaim",
            Self::TopologyInvalid => "TopologyInvalid",
            Self::NoEffect => "NoEffect",
            Self::TopologyKeysInvalid => "TopologyKeysInvalid",
            Self::PolicyInvalid => "PolicyInvalid",
            Self::PolicyIdle => "PolicyIdle",
            Self::LevelUnknown => "LevelUnknown",
            Self::DrainInvalid => "DrainInvalid",
            Self::DrainIdle => "DrainIdle",
            Self::DrainEnded => "DrainEnded",
        }
    }
}

impl Code {
    /// What is wrong with an object of `kind` as a whole.
    pub(crate) const fn of_object(kind: Option<Kind>) -> Self {
        Self::of_kind(kind, Self::Object)
    }

    /// What is wrong with a field of an object of `kind`.
    pub(crate) const fn of_field(kind: Option<Kind>) -> Self {
        Self::of_kind(kind, Self::Field)
    }

    /// Policies and drains have one code for all that is wrong with them.
    const fn of_kind(kind: Option<Kind>, other: Self) -> Self {
        match kind {
            Some(Kind::TopologyPolicy | Kind::ClusterTopologyPolicy) => Self::PolicyInvalid,
            Some(Kind::TopologyDrain) => Self::DrainInvalid,
            Some(
                Kind::Node
                | Kind::Service
                | Kind::EndpointSlice
                | Kind::ServiceCidr
                | Kind::Namespace,
            )
            | None => other,
        }
    }
}
