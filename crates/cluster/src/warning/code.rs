//! The stable code of each kind of warning, for programs. `docs/messages.md` explains each code.

use crate::object::Kind;

/// The kind of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A file, or a part of it that is not an object.
    File,
    /// A collection of objects that the API server does not return.
    Input,
    /// A list in which too many known objects are missing to apply it at once.
    ListDoubted,
    /// A map that cannot replace the Nodes.
    MapUnfit,
    /// An object that uses a label which is not known yet for every Node.
    LabelUnread,
    /// An object as a whole.
    Object,
    /// A field of Kubernetes.
    Field,
    /// A Node that claims an address inside a Service range.
    NodeClaim,
    /// An annotation `topology.ipvs-topo.io/...` that is not used.
    TopologyInvalid,
    /// Such an annotation on a Service that no node proxy serves.
    NoEffect,
    /// `spec.topologyKeys`.
    TopologyKeysInvalid,
    /// A `TopologyPolicy` or `ClusterTopologyPolicy`.
    PolicyInvalid,
    /// A policy that selects nothing.
    PolicyIdle,
    /// A level, or an avoided domain, whose label no Node has.
    LevelUnknown,
    /// A `TopologyDrain`.
    DrainInvalid,
    /// A drain of domains without Nodes and endpoints.
    DrainIdle,
    /// A drain whose end has passed.
    DrainEnded,
}

impl Code {
    /// The code in output.
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
    /// The code for an object of `kind` as a whole.
    pub(crate) const fn of_object(kind: Option<Kind>) -> Self {
        Self::of_kind(kind, Self::Object)
    }

    /// The code for a field of an object of `kind`.
    pub(crate) const fn of_field(kind: Option<Kind>) -> Self {
        Self::of_kind(kind, Self::Field)
    }

    /// Policies and drains have one code for all faults.
    const fn of_kind(kind: Option<Kind>, other: Self) -> Self {
        match kind {
            Some(Kind::TopologyPolicy | Kind::ClusterTopologyPolicy) => Self::PolicyInvalid,
            Some(Kind::TopologyDrain) => Self::DrainInvalid,
            Some(
                Kind::Node
                | Kind::Service
                | Kind::EndpointSlice
                | Kind::ServiceCidr
                | Kind::Namespace
                | Kind::PodMap,
            )
            | None => other,
        }
    }
}
