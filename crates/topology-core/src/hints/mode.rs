//! Which hints a Service requests.

/// Which hints a Service requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintMode {
    /// Topology Aware Hints: endpoints are distributed over zones in proportion to their CPU.
    Auto,
    /// `trafficDistribution: PreferSameZone`: hints for the endpoint's zone.
    SameZone,
    /// `trafficDistribution: PreferSameNode`: hints for the endpoint's node, and for its zone.
    SameNode,
    /// No hints.
    Nothing,
}

impl HintMode {
    /// The field or annotation that requests this mode, with its value.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Auto => "topology-mode: Auto",
            Self::SameZone | Self::SameNode => "trafficDistribution",
            Self::Nothing => "nothing",
        }
    }

    /// The values of `spec.trafficDistribution` in Kubernetes 1.37 (KEP-3015). `PreferClose` is the former name of
    /// `PreferSameZone`.
    pub const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

    /// Combines the annotations `service.kubernetes.io/topology-aware-hints` (`older`) and
    /// `service.kubernetes.io/topology-mode` (`newer`) and the field `spec.trafficDistribution`.
    ///
    /// If the older annotation is present, its value decides. Only `Auto` and `auto` count. An annotation that counts
    /// overrides the field.
    pub fn of(older: Option<&str>, newer: Option<&str>, distribution: Option<&str>) -> Self {
        if matches!(older.or(newer), Some("Auto" | "auto")) {
            return Self::Auto;
        }
        match distribution {
            Some("PreferClose" | "PreferSameZone") => Self::SameZone,
            Some("PreferSameNode") => Self::SameNode,
            _ => Self::Nothing,
        }
    }
}
