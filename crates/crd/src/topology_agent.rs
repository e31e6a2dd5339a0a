//! The status of a `TopologyAgent`, as the agent writes it and the controller reads it.
//!
//! `agent.rs` describes the same object for the API server. A test there compares the two.

pub mod rate;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use topology_core::model::{ObjectName, PolicyKind, PolicyName};

/// The status of a `TopologyAgent`. The controller skips unknown fields and elements of a later
/// version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentStatus {
    pub version: String,
    pub phase: AgentPhase,
    /// Policies that decide for a Service on the node: cluster policies first, then by namespace
    /// and name.
    #[serde(deserialize_with = "readable")]
    pub policies: Vec<PolicyInUse>,
    /// Drains in force, by name.
    #[serde(deserialize_with = "readable")]
    pub drains: Vec<DrainInUse>,
    /// Services that fell back to something else, the latest first.
    #[serde(deserialize_with = "readable")]
    pub fallbacks: Vec<Fallback>,
    /// Problems of the node itself.
    #[serde(deserialize_with = "readable")]
    pub warnings: Vec<NodeWarning>,
    pub counts: AgentCounts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeWarning {
    /// For example `OtherProxy`, `Kernel`.
    pub code: String,
    /// What is wrong, and what to do.
    pub message: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentPhase {
    /// The first list of some resource is not complete.
    #[default]
    Starting,
    Serving,
    /// The kernel refuses something, or data from the API server may be stale.
    Degraded,
    /// A phase of a later version.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PolicyFields", into = "PolicyFields")]
pub struct PolicyInUse {
    pub policy: PolicyName,
    /// The generation of the spec that the agent uses.
    pub generation: u64,
    /// The number of Services that it decides for on the node.
    pub services: u64,
}

/// A [`PolicyInUse`] as in JSON.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicyFields {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    generation: u64,
    services: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DrainInUse {
    pub name: String,
    /// The generation of the spec that the agent uses.
    pub generation: u64,
    /// The number of endpoints that take no new connections because of it.
    pub endpoints: u64,
    /// The number of Services that it skips.
    pub services_skipped: u64,
}

/// A Service that fell back to something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fallback {
    #[serde(with = "service_path")]
    pub service: ObjectName,
    /// The policy that requested the mode; none = annotations of the Service.
    #[serde(with = "policy_path", skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    pub reason: FallbackReason,
    /// The requested mode; none if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What applies now: a mode, `Uniform` or `Nothing`.
    pub to: String,
    /// When the fallback began, as a Kubernetes time.
    pub since: String,
}

/// Why a Service fell back, the most serious reason first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum FallbackReason {
    /// No Node has the label of a level.
    LevelUnknown,
    /// Nothing is left inside the boundary.
    NoMatch,
    /// The agent does not have the Node object.
    NodeUnknown,
    /// An administrator does not allow the mode of the annotations.
    NotAllowed,
    /// An annotation of the Service is not valid.
    Invalid,
    /// Too few endpoints are ready in total.
    Panic,
    /// A drain would leave no endpoint.
    DrainIgnored,
    /// A level has fewer ready endpoints than it needs.
    BelowMin,
    /// The levels have no endpoint.
    Empty,
    /// The node's kernel does not have the scheduler.
    SchedulerMissing,
    /// An administrator does not allow such a small overload limit.
    Clipped,
    /// No integer weights give the shares.
    WeightClamped,
    /// A reason of a later version.
    #[default]
    #[serde(other)]
    Other,
}

/// Totals for a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCounts {
    pub services: u64,
    pub virtual_servers: u64,
    pub real_servers: u64,
    /// Virtual servers, routes and tables that could not be programmed. The agent tries again.
    pub failed: u64,
    /// Policies that decide for a Service, including those that do not fit into a report.
    pub policies: u64,
    /// Services that fell back to something else, including those that do not fit into a report.
    pub fallbacks: u64,
}

impl FallbackReason {
    /// The reasons that this version knows, the most serious first.
    pub const ALL: [Self; 12] = [
        Self::LevelUnknown,
        Self::NoMatch,
        Self::NodeUnknown,
        Self::NotAllowed,
        Self::Invalid,
        Self::Panic,
        Self::DrainIgnored,
        Self::BelowMin,
        Self::Empty,
        Self::SchedulerMissing,
        Self::Clipped,
        Self::WeightClamped,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LevelUnknown => "LevelUnknown",
            Self::NoMatch => "NoMatch",
            Self::NodeUnknown => "NodeUnknown",
            Self::Panic => "Panic",
            Self::DrainIgnored => "DrainIgnored",
            Self::BelowMin => "BelowMin",
            Self::Empty => "Empty",
            Self::SchedulerMissing => "SchedulerMissing",
            Self::Clipped => "Clipped",
            Self::WeightClamped => "WeightClamped",
            Self::NotAllowed => "NotAllowed",
            Self::Invalid => "Invalid",
            Self::Other => "Other",
        }
    }
}

impl From<PolicyInUse> for PolicyFields {
    fn from(one: PolicyInUse) -> Self {
        Self {
            kind: one.policy.kind().api_value().to_owned(),
            namespace: one.policy.namespace.map(|namespace| namespace.to_string()),
            name: one.policy.name.to_string(),
            generation: one.generation,
            services: one.services,
        }
    }
}

impl TryFrom<PolicyFields> for PolicyInUse {
    type Error = String;

    fn try_from(fields: PolicyFields) -> Result<Self, Self::Error> {
        let policy = PolicyName {
            namespace: fields.namespace.map(Into::into),
            name: fields.name.into(),
        };
        if policy.kind().api_value() != fields.kind {
            let kind = match policy.kind() {
                PolicyKind::Cluster => "without a namespace",
                PolicyKind::Namespaced => "with a namespace",
            };
            return Err(format!("a policy {kind} is no {}", fields.kind));
        }
        Ok(Self {
            policy,
            generation: fields.generation,
            services: fields.services,
        })
    }
}

/// Skips the elements of a list that cannot be read.
fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<serde_json::Value>::deserialize(from)?.into_iter();
    Ok(all
        .filter_map(|one| serde_json::from_value(one).ok())
        .collect())
}

/// The name of an object as one text: `shop/cart`.
mod service_path {
    use serde::{Deserialize, Deserializer, Serializer};
    use topology_core::model::ObjectName;

    pub(super) fn serialize<S: Serializer>(
        service: &ObjectName,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(service)
    }

    /// A name without a namespace gets `default`, where its Event belongs. No agent writes such a
    /// name.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ObjectName, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(ObjectName::parse(&text).unwrap_or_else(|| ObjectName::new("default", text)))
    }
}

mod policy_path {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use topology_core::model::PolicyName;

    #[expect(clippy::ref_option, reason = "serde passes the field as it is")]
    pub(super) fn serialize<S: Serializer>(
        policy: &Option<PolicyName>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match policy {
            Some(policy) => serializer.serialize_str(&policy.path()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PolicyName>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(de::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a field, a phase, a reason and a kind of policy of a later version do not affect
    /// the rest.
    #[test]
    fn a_report_of_a_later_version_is_read_as_far_as_it_is_known() {
        let text = r#"{"version": "9.9.9", "phase": "Serving", "mood": "good",
            "fallbacks": [{"service": "shop/cart", "reason": "Eclipse", "to": "Uniform", "since": ""}]}"#;
        let status: AgentStatus = serde_json::from_str(text).unwrap();
        assert_eq!(status.fallbacks[0].reason, FallbackReason::Other);
        let cart = ObjectName::new("shop", "cart");
        assert_eq!(status.fallbacks[0].service, cart);
        assert_eq!(status.phase, AgentPhase::Serving);
        let text = r#"{"version": "9.9.9", "phase": "Resting",
            "policies": [{"kind": "GalacticTopologyPolicy", "name": "far"},
                {"kind": "ClusterTopologyPolicy", "name": "near", "generation": 2}],
            "drains": [{"name": 7}, {"name": "b"}],
            "fallbacks": [{"service": "shop/cart", "policy": "GalacticTopologyPolicy/a/b/c", "reason": "Panic"},
                {"service": "shop/cart", "reason": "Panic"}]}"#;
        let status: AgentStatus = serde_json::from_str(text).unwrap();
        assert_eq!(status.phase, AgentPhase::Unknown);
        let [policy] = &status.policies[..] else {
            panic!("{status:?}")
        };
        assert_eq!(policy.policy, PolicyName::cluster("near"));
        assert_eq!((status.drains.len(), &*status.drains[0].name), (1, "b"));
        assert_eq!(status.fallbacks.len(), 1);
    }

    #[test]
    fn a_policy_of_a_kind_that_does_not_fit_its_name_is_refused() {
        let text = r#"{"kind": "TopologyPolicy", "name": "near"}"#;
        assert!(serde_json::from_str::<PolicyInUse>(text).is_err());
        let text = r#"{"service": "a/b", "policy": "near"}"#;
        assert!(serde_json::from_str::<Fallback>(text).is_err());
    }
}
