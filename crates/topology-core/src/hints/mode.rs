//! Which hints a Service asks for.

/// Which hints a Service asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintMode {
    /// Topology Aware Hints: endpoints are dealt out to zones in proportion to their CPU.
    Auto,
    /// `trafficDistribution: PreferSameZone`: each endpoint is for its own zone.
    SameZone,
    /// `trafficDistribution: PreferSameNode`: each endpoint is for its own node, then for its own zone.
    SameNode,
    /// None.
    Nothing,
}

impl HintMode {
    /// The field or annotation that asks for them, as people write it.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Auto => "topology-mode: Auto",
            Self::SameZone | Self::SameNode => "trafficDistribution",
            Self::Nothing => "nothing",
        }
    }

    /// What Kubernetes 1.37 takes in `spec.trafficDistribution` (KEP-3015); `PreferClose` is the former name of
    /// `PreferSameZone`.
    pub const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

    /// What the annotations `service.kubernetes.io/topology-aware-hints` and `service.kubernetes.io/topology-mode` and
    /// the field `spec.trafficDistribution` ask for together.
    ///
    /// Where the older annotation is present its value decides, only `Auto` and `auto` count, and an annotation that
    /// counts goes before the field.
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
