//! Holds the state of each watched resource, for `status`, `/healthz` and metrics.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::node_source::topology_map::MapGap;
use super::resources::{ResourceId, WatchedResource};
use kube_io::ApiError;
use kube_io::Connection;
use kube_io::Count;
use kube_io::{Access, AccessError};

/// What is being done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    /// It is not requested.
    #[default]
    Unused,
    /// It is being listed for the first time.
    Listing,
    /// It was listed, and changes are received.
    Following,
    /// It was listed, and changes are not received now: what is known may be out of date.
    Stale,
    /// The server does not know this kind, so there are no objects.
    Absent,
}

impl Phase {
    /// The phase in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Listing => "listing",
            Self::Following => "following",
            Self::Stale => "stale",
            Self::Absent => "absent",
        }
    }
}

/// The state of one resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceStatus {
    /// The resource as `kubectl` takes it: `endpointslices.discovery.k8s.io`.
    pub name: &'static str,
    /// What is being done with it.
    pub phase: Phase,
    /// How many objects are known.
    pub objects: usize,
    /// How many of them the last list lacks, if that is too many to believe it.
    pub doubted: usize,
    /// When the list was complete, or changes were received again after a failure.
    pub synced_since: Option<Timestamp>,
    /// When the server last sent anything about it.
    pub last_heard: Option<Timestamp>,
    /// Why it cannot be read.
    pub trouble: Option<ApiError>,
    /// Of the map: why all Nodes are read instead.
    pub lack: Option<MapGap>,
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

    /// The server's address.
    pub fn server(&self) -> &str {
        self.connection.server()
    }

    /// Counts requests and bytes so far.
    pub fn count(&self) -> Count {
        self.connection.count()
    }

    /// Opens a connection to the same server for the caller's runtime. Its requests are counted together with those of the
    /// watch.
    pub async fn connect(&self, access: &Access) -> Result<Connection, AccessError> {
        self.connection.beside(access).await
    }

    /// Every resource, in the order in which they are listed in the documentation.
    pub fn resources(&self) -> Vec<ResourceStatus> {
        let states = self.lock();
        states.iter().map(|(_, state)| state.clone()).collect()
    }

    /// Whether Nodes are read from the map now.
    pub fn is_mapped(&self) -> bool {
        let states = self.lock();
        let mut maps = states
            .iter()
            .filter(|(id, _)| *id == ResourceId::TopologyMaps);
        maps.any(|(_, map)| {
            matches!(map.phase, Phase::Following | Phase::Stale) && map.lack.is_none()
        })
    }

    /// Since when something that was read may be out of date: the longest silence of all stale resources.
    pub fn stale_since(&self) -> Option<Timestamp> {
        let states = self.lock();
        let stale = states
            .iter()
            .filter(|(_, state)| state.phase == Phase::Stale);
        stale.filter_map(|(_, state)| state.last_heard).min()
    }

    /// The resource is requested.
    pub(super) fn began(&self, id: ResourceId) {
        self.change(id, |state| {
            if state.phase == Phase::Unused {
                state.phase = Phase::Listing;
            }
        });
    }

    /// The server sent something; `objects` are known now.
    pub(super) fn received(&self, id: ResourceId, now: Timestamp, objects: usize) {
        self.change(id, |state| {
            state.last_heard = Some(now);
            state.objects = objects;
        });
    }

    /// The last list lacks this many objects, which stay until another list lacks them; zero if it is believed.
    pub(super) fn doubts(&self, id: ResourceId, missing: usize) {
        self.change(id, |state| state.doubted = missing);
    }

    /// Everything was listed, or a stream of changes was opened after that.
    pub(super) fn watching(&self, id: ResourceId, now: Timestamp) {
        self.change(id, |state| {
            if state.phase != Phase::Following {
                state.synced_since = Some(now);
            }
            state.phase = Phase::Following;
            state.trouble = None;
        });
    }

    /// The server does not know the kind.
    pub(super) fn absent(&self, id: ResourceId, why: &ApiError) {
        self.change(id, |state| {
            state.phase = Phase::Absent;
            state.synced_since = None;
            state.trouble = Some(why.clone());
        });
    }

    /// A request or a stream failed.
    pub(super) fn failed(&self, id: ResourceId, why: &ApiError) {
        self.change(id, |state| {
            if state.phase == Phase::Following {
                state.phase = Phase::Stale;
                state.synced_since = None;
            }
            state.trouble = Some(why.clone());
        });
    }

    /// Nodes are read from the map, or the gap because of which they are not.
    pub(super) fn set_map_gap(&self, gap: Option<MapGap>) {
        self.change(ResourceId::TopologyMaps, |state| state.lack = gap);
    }

    fn change(&self, id: ResourceId, change: impl FnOnce(&mut ResourceStatus)) {
        let mut states = self.lock();
        if let Some((_, state)) = states.iter_mut().find(|(known, _)| *known == id) {
            change(state);
        }
    }

    /// A panic cannot leave a state half written.
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(ResourceId, ResourceStatus)>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
