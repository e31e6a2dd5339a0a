//! Holds the state of each watched resource, for `status`, `/healthz` and metrics.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use super::node_source::topology_map::MapGap;
use super::resources::{ResourceId, WatchedResource};
use kube_io::{Access, AccessError, ApiError, Connection, Count};

/// The state of the list and watch of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    #[default]
    Unused,
    /// The first list is not complete.
    Listing,
    /// Listed; changes are received.
    Following,
    /// Listed, but changes are not received now: known objects may be out of date.
    Stale,
    /// The server does not know this kind, so there are no objects.
    Absent,
}

impl Phase {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Listing => "listing",
            Self::Following => "following",
            Self::Stale => "stale",
            Self::Absent => "absent",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceStatus {
    /// The resource as `kubectl` accepts it: `endpointslices.discovery.k8s.io`.
    pub name: &'static str,
    pub phase: Phase,
    pub objects: usize,
    /// How many known objects the last list lacks, if that list waits for confirmation.
    pub doubted: usize,
    /// When the list was complete, or the watch was open again after a failure.
    pub synced_since: Option<Timestamp>,
    /// When the server last sent data.
    pub last_received: Option<Timestamp>,
    /// The last error, until the next success.
    pub error: Option<ApiError>,
    /// Of TopologyMaps: why all Nodes are read instead.
    pub map_gap: Option<MapGap>,
}

/// The state of every watched resource. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SyncStatus {
    connection: Connection,
    states: Arc<Mutex<Vec<(ResourceId, ResourceStatus)>>>,
}

impl SyncStatus {
    pub(super) fn new(connection: Connection, resources: &[WatchedResource]) -> Self {
        let states = resources.iter().map(|resource| {
            let state = ResourceStatus {
                name: resource.name,
                ..ResourceStatus::default()
            };
            (resource.id, state)
        });
        Self {
            connection,
            states: Arc::new(Mutex::new(states.collect())),
        }
    }

    pub fn server(&self) -> &str {
        self.connection.server()
    }

    /// Receives the addresses of the API server that the watches are connected to.
    pub fn peers(&self) -> watch::Receiver<Vec<SocketAddr>> {
        self.connection.peers()
    }

    pub fn count(&self) -> Count {
        self.connection.count()
    }

    /// Opens a connection to the same server for the caller's runtime. [`count`](Self::count)
    /// includes its requests.
    pub async fn connect(&self, access: &Access) -> Result<Connection, AccessError> {
        self.connection.beside(access).await
    }

    /// Returns every resource, in the order of `ipvs-topo status`.
    pub fn resources(&self) -> Vec<ResourceStatus> {
        let states = self.lock();
        states.iter().map(|(_, state)| state.clone()).collect()
    }

    /// Whether Nodes are read from TopologyMaps now.
    pub fn is_mapped(&self) -> bool {
        let states = self.lock();
        let mut maps = states
            .iter()
            .filter(|(id, _)| *id == ResourceId::TopologyMaps);
        maps.any(|(_, map)| {
            matches!(map.phase, Phase::Following | Phase::Stale) && map.map_gap.is_none()
        })
    }

    pub(super) fn began(&self, id: ResourceId) {
        self.change(id, |state| {
            if state.phase == Phase::Unused {
                state.phase = Phase::Listing;
            }
        });
    }

    pub(super) fn received(&self, id: ResourceId, now: Timestamp, objects: usize) {
        self.change(id, |state| {
            state.last_received = Some(now);
            state.objects = objects;
        });
    }

    /// Records how many objects a list that waits for confirmation lacks; zero without such a list.
    pub(super) fn set_doubted(&self, id: ResourceId, missing: usize) {
        self.change(id, |state| state.doubted = missing);
    }

    /// Records that the list is complete, or that a watch was opened after it.
    pub(super) fn watching(&self, id: ResourceId, now: Timestamp) {
        self.change(id, |state| {
            if state.phase != Phase::Following {
                state.synced_since = Some(now);
            }
            state.phase = Phase::Following;
            state.error = None;
        });
    }

    pub(super) fn absent(&self, id: ResourceId, why: &ApiError) {
        self.change(id, |state| {
            state.phase = Phase::Absent;
            state.synced_since = None;
            state.error = Some(why.clone());
        });
    }

    pub(super) fn failed(&self, id: ResourceId, why: &ApiError) {
        self.change(id, |state| {
            if state.phase == Phase::Following {
                state.phase = Phase::Stale;
                state.synced_since = None;
            }
            state.error = Some(why.clone());
        });
    }

    /// Records why Nodes are not read from TopologyMaps; `None` if they are.
    pub(super) fn set_map_gap(&self, gap: Option<MapGap>) {
        self.change(ResourceId::TopologyMaps, |state| state.map_gap = gap);
    }

    fn change(&self, id: ResourceId, change: impl FnOnce(&mut ResourceStatus)) {
        let mut states = self.lock();
        if let Some((_, state)) = states.iter_mut().find(|(known, _)| *known == id) {
            change(state);
        }
    }

    /// Ignores poisoning, as a panic cannot leave a state half written.
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(ResourceId, ResourceStatus)>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
