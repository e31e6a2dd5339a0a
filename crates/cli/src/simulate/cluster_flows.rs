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
    pub(crate) atlas: &'a NodeZones,
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
        ground: &FlowInput<'_>,
        snapshot: &Snapshot,
        services: &[ObjectName],
        tick: impl Fn() + Sync,
    ) -> Self {
        let decide = |grouping: &mut Grouping, name: &ObjectName| {
            let service = snapshot.service(name)?;
            let traffic = ground.demand.of(name);
            let flows = ground.flows(grouping, snapshot, service, traffic);
            tick();
            Some((name.clone(), flows))
        };
        let decided = parallel::map(services, Grouping::default, decide);
        let mut survey = Self::default();
        for (name, flows) in decided.into_iter().flatten() {
            survey.sum.add(&flows, ground.demand.of(&name).volume);
            survey.services.push((name, flows));
        }
        survey
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
        ground: &FlowInput<'_>,
        snapshot: &Snapshot,
        survey: &ClusterFlows,
        tick: impl Fn() + Sync,
    ) -> Self {
        let tools = || (BaselineCluster::of(snapshot), Grouping::default());
        let compared = parallel::map(
            &survey.services,
            tools,
            |(stage, grouping), (name, flows)| {
                let levels = flows.first().map_or(&[][..], |flow| &flow.levels);
                let service = snapshot.service(name)?;
                let compared = ground.compare(stage, grouping, snapshot, service, levels);
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
            let unhinted = unhinted.map(|trouble| (service.clone(), trouble));
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
        let groups = grouping.groups(snapshot, self.atlas, service, &traffic.parts);
        flows(snapshot, self.atlas, self.me, &service.name, &groups)
    }

    fn compare(
        &self,
        stage: &mut BaselineCluster,
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
            let trouble = stage.show(snapshot, service, levels, baseline);
            compared.unhinted = trouble.or(compared.unhinted);
            let mut sum = Sum::default();
            if let Some(shown) = stage.snapshot.service(&service.name) {
                let flows = self.flows(grouping, &stage.snapshot, shown, traffic);
                sum.add(&flows, traffic.volume);
            }
            compared.sums.push(sum);
        }
        compared
    }
}
