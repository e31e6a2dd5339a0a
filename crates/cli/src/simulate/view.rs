//! The JSON of `simulate`, and what its tables and its report are drawn from.

use std::net::IpAddr;

use agent_api::view::WarningView;
use serde::Serialize;

use super::figures::Figures;

/// `simulate -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulationView {
    /// Nodes that traffic starts on.
    pub nodes: usize,
    /// How much starts on each, for people.
    pub demand: String,
    /// Whether volumes are measured GiB.
    pub measured: bool,
    /// What a GiB between zones costs, if that was told.
    pub price_per_gib: Option<f64>,
    /// What was changed, for people; empty if nothing was.
    pub changes: Vec<String>,
    /// The zones, in the order of the rows and columns of every `flows`; an empty one is "no zone".
    pub zones: Vec<String>,
    /// All Services together.
    pub total: StatesView,
    /// One for each virtual server, by Service.
    pub services: Vec<FlowView>,
    /// What is wrong with the input.
    pub warnings: Vec<WarningView>,
}

/// The same traffic now, after the change, and as others would have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatesView {
    /// As the input has it.
    pub as_is: StateView,
    /// After the change; absent if nothing was changed.
    pub changed: Option<StateView>,
    /// As others would have it, without our policies; after the change, if there is one.
    pub others: Vec<OtherView>,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateView {
    /// In few numbers.
    #[serde(flatten)]
    pub figures: Figures,
    /// From zone (row) to zone (column), parts of all traffic.
    pub flows: Vec<Vec<f64>>,
}

/// What others would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherView {
    /// `uniform`, `topologyKeys`, `hints Auto`, `PreferSameZone`.
    pub name: String,
    /// Why it does not what it says, if so.
    pub note: Option<String>,
    /// The same as one word of a closed list, if it is for one reason.
    pub note_code: Option<String>,
    /// In few numbers.
    #[serde(flatten)]
    pub figures: Figures,
}

/// One virtual server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowView {
    /// `namespace/name`.
    pub service: String,
    /// The Service port's name; empty if it has none.
    pub port_name: String,
    /// `TCP 10.96.0.10:80`.
    pub frontend: String,
    /// The policy in words, as it is.
    pub policy: String,
    /// The policy in words after the change, if that is another.
    pub changed_policy: Option<String>,
    /// Levels that ask for a share and have no usable endpoint, in the last state.
    pub empty_levels: Vec<EmptyView>,
    /// Its traffic.
    #[serde(flatten)]
    pub states: StatesView,
    /// Every endpoint that could serve, by address and port.
    pub endpoints: Vec<LoadView>,
}

/// A level without endpoints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EmptyView {
    /// The level.
    pub level: String,
    /// The part of the traffic that meets it empty.
    pub part: f64,
}

/// How much one endpoint gets, relative to an even split.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadView {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its Node, if known.
    pub node: Option<String>,
    /// Its zone; empty if not known.
    pub zone: String,
    /// As it is; absent for one that the change adds.
    pub as_is: Option<f64>,
    /// After the change; absent without one, or for one that the change takes away.
    pub changed: Option<f64>,
}
