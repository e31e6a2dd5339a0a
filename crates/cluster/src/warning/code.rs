//! One word for each kind of warning, stable, for programs; `docs/messages.md` has an entry for each.

use topology_core::policy::PREFIX;

use super::Warning;

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
    pub const fn word(self) -> &'static str {
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

impl Warning {
    /// What kind of thing is wrong.
    pub fn code(&self) -> Code {
        self.own_code.unwrap_or_else(|| self.told_code())
    }

    fn told_code(&self) -> Code {
        match (&*self.kind, &*self.field) {
            ("", _) => Code::File,
            ("TopologyPolicy" | "ClusterTopologyPolicy", _) => Code::PolicyInvalid,
            ("TopologyDrain", _) => Code::DrainInvalid,
            (_, "") => Code::Object,
            ("Service", field)
                if field.starts_with("metadata.annotations") && field.contains(PREFIX) =>
            {
                Code::TopologyInvalid
            }
            ("Service", field) if field.starts_with("spec.topologyKeys") => {
                Code::TopologyKeysInvalid
            }
            _ => Code::Field,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_told_by_its_object_and_field() {
        let code = |kind: &str, field: &str| {
            let warning = Warning {
                kind: kind.into(),
                field: field.into(),
                ..Warning::of_file(&"f".into(), 1, "x", "y")
            };
            warning.code().word()
        };
        assert_eq!(code("", ""), "File");
        assert_eq!(code("Service", ""), "Object");
        assert_eq!(code("Service", "spec.ports[0].port"), "Field");
        let weights = format!("metadata.annotations[{PREFIX}weights]");
        assert_eq!(code("Service", &weights), "TopologyInvalid");
        assert_eq!(
            code("Service", "spec.topologyKeys[1]"),
            "TopologyKeysInvalid"
        );
        assert_eq!(
            code("ClusterTopologyPolicy", "spec.levels[16]"),
            "PolicyInvalid"
        );
        assert_eq!(code("TopologyDrain", "spec.expiresAt"), "DrainInvalid");
    }
}
