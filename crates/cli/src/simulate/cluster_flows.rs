//! Computes the traffic of all Services, before and after a change, and with other mechanisms.

use rustc_hash::FxHashMap;
use topology_core::hints::HintProblem;
use topology_core::model::{ObjectName, Service};
use topology_core::policy::LevelKey;
use topology_core::resolve::Viewpoint;
use topology_core::snapshot::Snapshot;

use super::baseline::{Baseline, BaselineCluster};
use super::demand::{Demand, Traffic};
use super::figures::Sum;
use super::flow::{Flow, flows};
use super::group::Grouping;
use super::node_zones::NodeZones;
use super::parallel;

/// The part of the input that is the same in both states.
#[derive(Debug)]
pub(crate) struct FlowInput<'a> {
    pub(crate) node_zones: &'a NodeZones,
    pub(crate) demand: &'a Demand,
    pub(crate) me: &'a Viewpoint,
}

/// The traffic of every Service in one state of the cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterFlows {
    /// By Service.
    pub(crate) services: Vec<(ObjectName, Vec<Flow>)>,
    /// The sum of all Services.
    pub(crate) sum: Sum,
}

/// The same traffic with other mechanisms.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// For each Service, in the order of [`Baseline::ALL`].
    pub(crate) services: FxHashMap<ObjectName, Vec<Sum>>,
    /// The reason if a Service would get no hints for `topology-mode: Auto`.
    pub(crate) unhinted: FxHashMap<ObjectName, HintProblem>,
    /// The sum of all Services.
    pub(crate) sums: Vec<Sum>,
}

impl ClusterFlows {
    /// Decides `services`; calls `tick` after each.
    pub(crate) fn of(
        flow_input: &FlowInput<'_>,
        snapshot: &Snapshot,
        services: &[ObjectName],
        tick: impl Fn() + Sync,
    ) -> Self {
        let decide = |grouping: &mut Grouping, name: &ObjectName| {
            let service = snapshot.service(name)?;
            let traffic = flow_input.demand.of(name);
            let flows = flow_input.flows(grouping, snapshot, service, traffic);
            tick();
            Some((name.clone(), flows))
        };
        let decided = parallel::map(services, Grouping::default, decide);
        let mut cluster_flows = Self::default();
        for (name, flows) in decided.into_iter().flatten() {
            cluster_flows
                .sum
                .add(&flows, flow_input.demand.of(&name).volume);
            cluster_flows.services.push((name, flows));
        }
        cluster_flows
    }
}

/// The results of the other mechanisms for one Service.
#[derive(Debug)]
struct Compared {
    service: ObjectName,
    sums: Vec<Sum>,
    unhinted: Option<HintProblem>,
}

impl Comparison {
    /// Decides the Services with each mechanism; calls `tick` after each Service.
    pub(crate) fn of(
        flow_input: &FlowInput<'_>,
        snapshot: &Snapshot,
        cluster_flows: &ClusterFlows,
        tick: impl Fn() + Sync,
    ) -> Self {
        let tools = || (BaselineCluster::of(snapshot), Grouping::default());
        let compared = parallel::map(
            &cluster_flows.services,
            tools,
            |(baseline_cluster, grouping), (name, flows)| {
                let levels = flows.first().map_or(&[][..], |flow| &flow.levels);
                let service = snapshot.service(name)?;
                let compared =
                    flow_input.compare(baseline_cluster, grouping, snapshot, service, levels);
                tick();
                Some(compared)
            },
        );
        let mut comparison = Self {
            sums: vec![Sum::default(); Baseline::ALL.len()],
            ..Self::default()
        };
        for Compared {
            service,
            sums,
            unhinted,
        } in compared.into_iter().flatten()
        {
            for (sum, one) in comparison.sums.iter_mut().zip(&sums) {
                sum.merge(one);
            }
            let unhinted = unhinted.map(|problem| (service.clone(), problem));
            comparison.unhinted.extend(unhinted);
            comparison.services.insert(service, sums);
        }
        comparison
    }
}

impl FlowInput<'_> {
    fn flows(
        &self,
        grouping: &mut Grouping,
        snapshot: &Snapshot,
        service: &Service,
        traffic: &Traffic,
    ) -> Vec<Flow> {
        let groups = grouping.groups(snapshot, self.node_zones, service, &traffic.parts);
        flows(snapshot, self.node_zones, self.me, &service.name, &groups)
    }

    fn compare(
        &self,
        baseline_cluster: &mut BaselineCluster,
        grouping: &mut Grouping,
        snapshot: &Snapshot,
        service: &Service,
        levels: &[LevelKey],
    ) -> Compared {
        let traffic = self.demand.of(&service.name);
        let mut compared = Compared {
            service: service.name.clone(),
            sums: Vec::new(),
            unhinted: None,
        };
        for baseline in Baseline::ALL {
            let problem = baseline_cluster.show(snapshot, service, levels, baseline);
            compared.unhinted = problem.or(compared.unhinted);
            let mut sum = Sum::default();
            if let Some(shown) = baseline_cluster.snapshot.service(&service.name) {
                let flows = self.flows(grouping, &baseline_cluster.snapshot, shown, traffic);
                sum.add(&flows, traffic.volume);
            }
            compared.sums.push(sum);
        }
        compared
    }
}
