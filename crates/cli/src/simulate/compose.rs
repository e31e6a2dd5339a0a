//! Builds the views from the results.

use std::net::SocketAddr;

use agent_api::numbers::many;
use agent_api::view::WarningView;
use topology_core::hints::HintProblem;
use topology_core::virtual_server::VirtualServerKey;

use super::baseline::Baseline;
use super::cluster_flows::{ClusterFlows, Comparison, FlowInput};
use super::figures::Sum;
use super::flow::{Flow, Load};
use super::view::{
    EmptyView, FlowView, LoadView, OtherView, SimulationView, StateView, StatesView,
};
use crate::dns_answers::record_type;

#[derive(Debug)]
pub(crate) struct SimulationResult<'a> {
    pub(crate) flow_input: &'a FlowInput<'a>,
    pub(crate) as_is: ClusterFlows,
    pub(crate) changed: Option<ClusterFlows>,
    pub(crate) comparison: Comparison,
    pub(crate) price: Option<f64>,
}

impl SimulationResult<'_> {
    pub(crate) fn view(&self, changes: Vec<String>, warnings: Vec<WarningView>) -> SimulationView {
        let node_zones = self.flow_input.node_zones;
        let mut services = Vec::new();
        for (at, (name, flows)) in self.as_is.services.iter().enumerate() {
            let later = self
                .changed
                .as_ref()
                .and_then(|cluster_flows| cluster_flows.services.get(at));
            let later = later.map(|(_, flows)| flows.as_slice());
            for (port, flow) in flows.iter().enumerate() {
                let after = later.map(|flows| flows.get(port));
                let mut view = self.flow(flow, after.flatten());
                view.service = name.to_string();
                let sums = self.comparison.services.get(name).map(Vec::as_slice);
                let problem = self.comparison.unhinted.get(name).map(NoHints::because);
                view.states.others = self.others(sums, problem.as_ref());
                services.push(view);
            }
        }
        SimulationView {
            nodes: node_zones.nodes.len(),
            demand: self.flow_input.demand.words.clone(),
            measured: self.flow_input.demand.is_measured(),
            price_per_gib: self.price,
            changes,
            zones: node_zones.zones.iter().map(ToString::to_string).collect(),
            total: StatesView {
                as_is: self.state(&self.as_is.sum),
                changed: self
                    .changed
                    .as_ref()
                    .map(|cluster_flows| self.state(&cluster_flows.sum)),
                others: self.others(Some(&self.comparison.sums), self.unhinted().as_ref()),
            },
            services,
            warnings,
        }
    }

    fn state(&self, sum: &Sum) -> StateView {
        let measured = self.flow_input.demand.is_measured();
        StateView {
            figures: sum.figures(self.flow_input.node_zones, measured, self.price),
            flows: sum.parts(),
        }
    }

    /// `unhinted` is the reason if there are no hints.
    fn others(&self, sums: Option<&[Sum]>, unhinted: Option<&NoHints>) -> Vec<OtherView> {
        let sums = Baseline::ALL.iter().zip(sums.unwrap_or_default());
        let other = |(baseline, sum): (&Baseline, &Sum)| {
            let unhinted = unhinted.filter(|_| *baseline == Baseline::HintsAuto);
            OtherView {
                name: baseline.name().to_owned(),
                note: unhinted.map(|none| none.words.clone()),
                note_code: unhinted.and_then(|none| none.code).map(str::to_owned),
                figures: self.state(sum).figures,
            }
        };
        sums.map(other).collect()
    }

    /// The number of Services without hints; the reason, if there is only one.
    fn unhinted(&self) -> Option<NoHints> {
        let all = self.as_is.services.len();
        let mut troubles = self.comparison.unhinted.values();
        match (troubles.next(), troubles.count(), all) {
            (None, ..) => None,
            (Some(problem), 0, 1) => Some(NoHints::because(problem)),
            (Some(_), more, all) => Some(NoHints {
                code: None,
                words: format!(
                    "no hints for {} of {}",
                    more + 1,
                    many(all as u64, "Service")
                ),
            }),
        }
    }

    fn flow(&self, flow: &Flow, changed: Option<&Flow>) -> FlowView {
        let last = changed.unwrap_or(flow);
        let empty = |(level, part): &(String, f64)| EmptyView {
            level: level.clone(),
            part: *part,
        };
        FlowView {
            service: String::new(),
            port_name: flow.port_name.to_string(),
            kind: flow.kind.to_owned(),
            frontend: frontend(&flow.key),
            policy: flow.policy.clone(),
            changed_policy: changed
                .map(|flow| flow.policy.clone())
                .filter(|policy| *policy != flow.policy),
            empty_levels: last.empty.iter().map(empty).collect(),
            states: StatesView {
                as_is: self.alone(flow),
                changed: changed.map(|flow| self.alone(flow)),
                others: Vec::new(),
            },
            endpoints: self.loads(flow, changed),
        }
    }

    /// The state of one virtual server by itself.
    fn alone(&self, flow: &Flow) -> StateView {
        let mut sum = Sum::default();
        sum.add(std::slice::from_ref(flow), 1.0);
        let mut state = self.state(&sum);
        (state.figures.cross_gib, state.figures.cost) = (None, None);
        state
    }

    /// Merges two sorted lists.
    fn loads(&self, flow: &Flow, changed: Option<&Flow>) -> Vec<LoadView> {
        let id = |load: &Load| (load.address, load.port);
        let mut loads: Vec<LoadView> = flow.endpoints.iter().map(|load| self.load(load)).collect();
        for load in changed.iter().flat_map(|flow| &flow.endpoints) {
            match loads.binary_search_by_key(&id(load), |known| (known.address, known.port)) {
                Ok(at) => loads
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|known| known.changed = Some(load.relative)),
                Err(at) => {
                    let added = LoadView {
                        as_is: None,
                        changed: Some(load.relative),
                        ..self.load(load)
                    };
                    loads.insert(at, added);
                }
            }
        }
        loads
    }

    fn load(&self, load: &Load) -> LoadView {
        let zone = self.flow_input.node_zones.zones.get(load.zone);
        LoadView {
            address: load.address,
            port: load.port,
            node: load.node.as_deref().map(str::to_owned),
            zone: zone.map(ToString::to_string).unwrap_or_default(),
            as_is: Some(load.relative),
            changed: None,
        }
    }
}

/// The reason if `topology-mode: Auto` would give no hints, so that all shares are equal.
#[derive(Debug)]
struct NoHints {
    /// The code of the problem, if there is only one.
    code: Option<&'static str>,
    words: String,
}

impl NoHints {
    fn because(problem: &HintProblem) -> Self {
        Self {
            code: Some(problem.code()),
            words: format!("no hints, as {problem}"),
        }
    }
}

/// `TCP 10.96.0.10:80`; for DNS the record type.
fn frontend(key: &VirtualServerKey) -> String {
    if key.is_for_dns() {
        return record_type(key.family()).to_owned();
    }
    match *key {
        VirtualServerKey::Address {
            protocol,
            address,
            port,
        } => {
            format!("{protocol} {}", SocketAddr::new(address, port))
        }
        VirtualServerKey::FirewallMark { mark, .. } => format!("mark {mark}"),
    }
}
