//! Decides a Service with other mechanisms: no policy, `topologyKeys`, and both kinds of hints.
//!
//! Each is a change of the Service and its slices, which the same resolver then decides:
//! `topologyKeys` has its original meaning, and hints are read as in kube-proxy 1.35.

use std::sync::Arc;

use topology_core::hints::{self, HintEvent, HintMode, HintProblem, Zones};
use topology_core::model::{EndpointSlice, Faults, Node, Service};
use topology_core::policy::{LevelKey, Policy, ZONE, from_topology_keys};
use topology_core::snapshot::Snapshot;

use super::node_zones::zone_of_endpoint;

/// A mechanism that `simulate` compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// Every ready endpoint gets the same share.
    Uniform,
    /// The levels of the deciding policy, as an order without shares; zone, then any, without one.
    TopologyKeys,
    /// Topology Aware Hints: `service.kubernetes.io/topology-mode: Auto`.
    HintsAuto,
    /// `trafficDistribution: PreferSameZone`.
    PreferSameZone,
}

impl Baseline {
    /// All mechanisms, in the order of output.
    pub(crate) const ALL: [Self; 4] = [
        Self::Uniform,
        Self::TopologyKeys,
        Self::HintsAuto,
        Self::PreferSameZone,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::TopologyKeys => "topologyKeys",
            Self::HintsAuto => "hints Auto",
            Self::PreferSameZone => "PreferSameZone",
        }
    }

    /// The hints on the endpoints.
    const fn hints(self) -> HintMode {
        match self {
            Self::Uniform | Self::TopologyKeys => HintMode::Nothing,
            Self::HintsAuto => HintMode::Auto,
            Self::PreferSameZone => HintMode::SameZone,
        }
    }
}

/// A cluster with the Nodes of another one, one Service at a time, and no policies.
#[derive(Debug, Default)]
pub(crate) struct BaselineCluster {
    pub(crate) snapshot: Snapshot,
    zones: Option<Zones>,
    shown: Vec<EndpointSlice>,
}

impl BaselineCluster {
    /// Copies the Nodes of `snapshot`.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut cluster = Self {
            zones: Zones::of(snapshot.nodes()),
            ..Self::default()
        };
        for node in snapshot.nodes() {
            cluster.snapshot.set_node(Node::clone(node));
        }
        cluster
    }

    /// Replaces the present Service by `service` of `from` under `baseline`; a policy with `levels`
    /// decides it. Returns why requested hints cannot be computed.
    pub(crate) fn show(
        &mut self,
        from: &Snapshot,
        service: &Service,
        levels: &[LevelKey],
        baseline: Baseline,
    ) -> Option<HintProblem> {
        self.clear();
        self.shown = from.slices(&service.name).to_vec();
        for endpoint in self.shown.iter_mut().flat_map(|slice| &mut slice.endpoints) {
            let zone = zone_of_endpoint(from, endpoint);
            endpoint.zone = (!zone.is_empty()).then_some(zone);
        }
        let events = hints::write(baseline.hints(), self.zones.as_ref(), &mut self.shown);
        let policy = match baseline {
            Baseline::TopologyKeys => keys_of(levels).map(Arc::new),
            Baseline::Uniform | Baseline::HintsAuto | Baseline::PreferSameZone => None,
        };
        self.snapshot.set_service(Service {
            policy,
            named_policy: None,
            faults: Faults::None,
            ..service.clone()
        });
        for slice in &self.shown {
            self.snapshot.set_slice(slice.clone());
        }
        events.into_iter().find_map(|event| match event {
            HintEvent::Disabled { problem, .. } => Some(problem),
            HintEvent::Enabled { .. } => None,
        })
    }

    fn clear(&mut self) {
        let names: Vec<_> = self
            .snapshot
            .services()
            .map(|service| service.name.clone())
            .collect();
        for name in names {
            self.snapshot.remove_service(&name);
        }
        for slice in self.shown.drain(..) {
            self.snapshot.remove_slice(&slice.name);
        }
        self.snapshot.take_dirty("");
    }
}

/// The levels as a list; zone, then any, if there are none.
fn keys_of(levels: &[LevelKey]) -> Option<Policy> {
    let mut keys: Vec<&str> = levels.iter().map(key_of).collect();
    if keys.is_empty() {
        keys = vec![ZONE, "*"];
    }
    from_topology_keys(&keys).ok()?.0
}

fn key_of(key: &LevelKey) -> &str {
    match key {
        LevelKey::Node => "kubernetes.io/hostname",
        LevelKey::Label(label) => label,
        LevelKey::Any => "*",
    }
}
