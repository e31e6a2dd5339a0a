//! Every Service of a cluster, decided by every Node, now and after a change, and beside it what others would do.

use rustc_hash::FxHashMap;
use topology_core::hints::Trouble;
use topology_core::model::{ObjectName, Service};
use topology_core::resolve::Viewpoint;
use topology_core::snapshot::Snapshot;

use super::atlas::Atlas;
use super::demand::{Demand, Traffic};
use super::figures::Sum;
use super::flow::{Flow, flows};
use super::group::Grouping;
use super::rival::{Rival, Stage};

/// What does not change between one state of the cluster and the other.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) atlas: &'a Atlas,
    pub(crate) demand: &'a Demand,
    pub(crate) me: &'a Viewpoint,
}

/// The flows of every Service in one state of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// By Service.
    pub(crate) services: Vec<(ObjectName, Vec<Flow>)>,
    /// All together.
    pub(crate) sum: Sum,
}

/// The same traffic under what others do.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Of each Service, in the order of [`Rival::ALL`].
    pub(crate) services: FxHashMap<ObjectName, Vec<Sum>>,
    /// Why a Service would get no hints for `topology-mode: Auto`.
    pub(crate) unhinted: FxHashMap<ObjectName, Trouble>,
    /// All together.
    pub(crate) sums: Vec<Sum>,
}

impl Survey {
    /// Decides about `services`; `tick` is called after each.
    pub(crate) fn of(
        ground: &Ground<'_>,
        snapshot: &Snapshot,
        services: &[ObjectName],
        mut tick: impl FnMut(),
    ) -> Self {
        let mut survey = Self::default();
        let mut grouping = Grouping::default();
        for service in services.iter().filter_map(|name| snapshot.service(name)) {
            let traffic = ground.demand.of(&service.name);
            let flows = ground.flows(&mut grouping, snapshot, service, traffic);
            survey.sum.add(&flows, traffic.volume);
            survey.services.push((service.name.clone(), flows));
            tick();
        }
        survey
    }
}

impl Comparison {
    /// Decides about the Services of `survey` as each of the others would; `tick` is called after each Service.
    pub(crate) fn of(
        ground: &Ground<'_>,
        snapshot: &Snapshot,
        survey: &Survey,
        mut tick: impl FnMut(),
    ) -> Self {
        let mut comparison = Self {
            sums: vec![Sum::default(); Rival::ALL.len()],
            ..Self::default()
        };
        let mut stage = Stage::of(snapshot);
        let mut grouping = Grouping::default();
        for (name, flows) in &survey.services {
            let Some(service) = snapshot.service(name) else {
                continue;
            };
            let levels = flows.first().map_or(&[][..], |flow| &flow.levels);
            let traffic = ground.demand.of(&service.name);
            let mut sums = vec![Sum::default(); Rival::ALL.len()];
            for (at, rival) in Rival::ALL.into_iter().enumerate() {
                if let Some(trouble) = stage.show(snapshot, service, levels, rival) {
                    comparison.unhinted.insert(service.name.clone(), trouble);
                }
                let Some(shown) = stage.snapshot.service(&service.name) else {
                    continue;
                };
                let flows = ground.flows(&mut grouping, &stage.snapshot, shown, traffic);
                let places = [comparison.sums.get_mut(at), sums.get_mut(at)];
                places
                    .into_iter()
                    .flatten()
                    .for_each(|sum| sum.add(&flows, traffic.volume));
            }
            comparison.services.insert(service.name.clone(), sums);
            tick();
        }
        comparison
    }
}

impl Ground<'_> {
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
}
