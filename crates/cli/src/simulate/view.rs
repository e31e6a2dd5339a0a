//! The JSON of `simulate`, from which its tables and its page are built.

use std::net::IpAddr;

use agent_api::view::WarningView;
use serde::Serialize;

use super::figures::Figures;

/// `simulate -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulationView {
    /// Number of Nodes, where traffic starts.
    pub nodes: usize,
    /// The demand of Nodes, as text.
    pub demand: String,
    /// Whether volumes are measured GiB.
    pub measured: bool,
    /// The price of a GiB between zones, if given.
    pub price_per_gib: Option<f64>,
    /// The changes, as text; empty without one.
    pub changes: Vec<String>,
    /// The zones, in the order of the rows and columns of every `flows`; an empty one means "no
    /// zone".
    pub zones: Vec<String>,
    /// The sum of all Services.
    pub total: StatesView,
    /// The virtual servers, and the names of headless Services, by Service.
    pub services: Vec<FlowView>,
    /// Warnings about the input.
    pub warnings: Vec<WarningView>,
}

/// The same traffic now, after the change, and with other mechanisms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatesView {
    pub as_is: StateView,
    /// After the change; absent without one.
    pub changed: Option<StateView>,
    /// With other mechanisms instead of policies; after the change, if there is one.
    pub others: Vec<OtherView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateView {
    #[serde(flatten)]
    pub figures: Figures,
    /// From zone (row) to zone (column), as parts of all traffic.
    pub flows: Vec<Vec<f64>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherView {
    /// `uniform`, `topologyKeys`, `hints Auto`, `PreferSameZone`.
    pub name: String,
    /// The reason if it has no effect.
    pub note: Option<String>,
    /// The same as a code, if there is only one reason.
    pub note_code: Option<String>,
    #[serde(flatten)]
    pub figures: Figures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowView {
    /// `namespace/name`.
    pub service: String,
    /// The Service port's name; empty if it has none, and for a headless Service.
    pub port_name: String,
    /// `ClusterIP`, `ExternalIP` or `LoadBalancer`; `DNS` for a headless Service.
    pub kind: String,
    /// `TCP 10.96.0.10:80`; `A` or `AAAA` for a headless Service.
    pub frontend: String,
    /// The present policy, as text.
    pub policy: String,
    /// The policy after the change, as text, if it differs.
    pub changed_policy: Option<String>,
    /// Levels with a share and without usable endpoints, in the last state.
    pub empty_levels: Vec<EmptyView>,
    #[serde(flatten)]
    pub states: StatesView,
    /// Every endpoint that could serve, by address and port.
    pub endpoints: Vec<LoadView>,
}

/// A level without endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmptyView {
    pub level: String,
    /// The part of the traffic that it affects.
    pub part: f64,
}

/// The load of an endpoint, relative to an even split.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadView {
    pub address: IpAddr,
    /// 0 for a headless Service.
    pub port: u16,
    /// The Node, if known.
    pub node: Option<String>,
    /// The zone; empty if unknown.
    pub zone: String,
    /// Now; absent for an endpoint that the change adds.
    pub as_is: Option<f64>,
    /// After the change; absent without one, and for an endpoint that the change removes.
    pub changed: Option<f64>,
}
