//! The same Service under what others do: no policy, `topologyKeys`, and the two kinds of hints.
//!
//! Each is a change to the Service and its slices, which the same resolver then decides about: `topologyKeys` means what
//! it meant, and hints are consumed as kube-proxy 1.35 does.

use topology_core::model::{Endpoint, EndpointSlice, Hints, Node, Service};
use topology_core::policy::{LevelKey, Policy, from_topology_keys};
use topology_core::snapshot::Snapshot;

use super::atlas::{ZONE, zone_of_endpoint};

/// What others would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rival {
    /// Every ready endpoint alike.
    Uniform,
    /// The levels of the Service's policy as an order without shares; zone, then any, if it has none.
    TopologyKeys,
    /// `trafficDistribution: PreferSameZone`.
    PreferSameZone,
}

impl Rival {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Self; 3] = [Self::Uniform, Self::TopologyKeys, Self::PreferSameZone];

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::TopologyKeys => "topologyKeys",
            Self::PreferSameZone => "PreferSameZone",
        }
    }
}

/// A cluster with the Nodes of another and one Service at a time, free of policies.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) snapshot: Snapshot,
    shown: Vec<EndpointSlice>,
}

impl Stage {
    /// With the Nodes of `snapshot`.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut stage = Self::default();
        for node in snapshot.nodes() {
            stage.snapshot.set_node(Node::clone(node));
        }
        stage
    }

    /// Puts `service` of `from` on the stage as `rival` has it, in place of the one before.
    pub(crate) fn show(&mut self, from: &Snapshot, service: &Service, rival: Rival) {
        self.clear();
        self.shown = from.slices(&service.name).to_vec();
        match rival {
            Rival::Uniform | Rival::TopologyKeys => hint(&mut self.shown, |_| None),
            Rival::PreferSameZone => hint(&mut self.shown, |endpoint| own_zone(from, endpoint)),
        }
        let policy = match rival {
            Rival::TopologyKeys => keys_of(service.policy.as_deref()).map(Box::new),
            Rival::Uniform | Rival::PreferSameZone => None,
        };
        self.snapshot.set_service(Service {
            policy,
            named_policy: None,
            ..service.clone()
        });
        for slice in &self.shown {
            self.snapshot.set_slice(slice.clone());
        }
    }

    /// Takes the Service that is shown off the stage.
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

fn hint(slices: &mut [EndpointSlice], hints: impl Fn(&Endpoint) -> Option<Box<Hints>>) {
    for endpoint in slices.iter_mut().flat_map(|slice| &mut slice.endpoints) {
        endpoint.hints = hints(endpoint);
    }
}

/// A ready endpoint is hinted for the zone it is in.
fn own_zone(snapshot: &Snapshot, endpoint: &Endpoint) -> Option<Box<Hints>> {
    let zone = zone_of_endpoint(snapshot, endpoint);
    (endpoint.ready && !zone.is_empty()).then(|| {
        Box::new(Hints {
            zones: vec![zone],
            nodes: Vec::new(),
        })
    })
}

/// The list that comes nearest to the policy's levels.
fn keys_of(policy: Option<&Policy>) -> Option<Policy> {
    let levels = policy
        .map(|policy| policy.levels.as_slice())
        .unwrap_or_default();
    let mut keys: Vec<&str> = levels.iter().map(|level| key_of(&level.key)).collect();
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
