//! How each collection stands, for whoever asks.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::node_source::topology_map::MapGap;
use super::resources::{MAPS, RESOURCES};
use kube_io::ApiError;
use kube_io::Connection;
use kube_io::Count;
use kube_io::{Access, AccessError};

/// What a collection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    /// Nothing asks for it.
    #[default]
    Unused,
    /// It is read for the first time.
    Listing,
    /// It was read, and changes are received.
    Following,
    /// It was read, and changes are not received now: what is known of it may be out of date.
    Stale,
    /// The server does not know this kind of object, so there is none.
    Absent,
}

impl Phase {
    /// The word for it in output.
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

/// How one collection stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceStatus {
    /// The collection, as `kubectl` takes it: `endpointslices.discovery.k8s.io`.
    pub name: &'static str,
    /// What it is doing.
    pub phase: Phase,
    /// How many objects are known.
    pub objects: usize,
    /// How many of them the last list lacks, which is too many to believe it.
    pub doubted: usize,
    /// When it was first read in full, or changes were received again after they had not been.
    pub synced_since: Option<Timestamp>,
    /// When the server last said anything about it.
    pub last_heard: Option<Timestamp>,
    /// What stands in the way.
    pub trouble: Option<ApiError>,
    /// Of the map: why all Nodes are read themselves instead.
    pub lack: Option<MapGap>,
}

/// How everything that is read from the API server stands. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SyncStatus {
    connection: Connection,
    states: Arc<Mutex<[ResourceStatus; RESOURCES.len()]>>,
}

impl SyncStatus {
    pub(super) fn new(connection: Connection) -> Self {
        let states = RESOURCES.map(|input| ResourceStatus {
            name: input.name,
            ..ResourceStatus::default()
        });
        Self {
            connection,
            states: Arc::new(Mutex::new(states)),
        }
    }

    /// The server's address.
    pub fn server(&self) -> &str {
        self.connection.server()
    }

    /// Requests and bytes so far.
    pub fn count(&self) -> Count {
        self.connection.count()
    }

    /// Another way to the same server, for the caller's runtime; its requests count with those for what is read.
    pub async fn connect(&self, access: &Access) -> Result<Connection, AccessError> {
        self.connection.beside(access).await
    }

    /// Every collection.
    pub fn inputs(&self) -> Vec<ResourceStatus> {
        self.lock().to_vec()
    }

    /// Whether the map stands for the Nodes now.
    pub fn is_mapped(&self) -> bool {
        let states = self.lock();
        let map = states.get(MAPS);
        map.is_some_and(|map| {
            matches!(map.phase, Phase::Following | Phase::Stale) && map.lack.is_none()
        })
    }

    /// Since when something that was read may be out of date: the longest silence of all that are stale.
    pub fn stale_since(&self) -> Option<Timestamp> {
        let states = self.lock();
        let stale = states.iter().filter(|state| state.phase == Phase::Stale);
        stale.filter_map(|state| state.last_heard).min()
    }

    /// The collection is asked for.
    pub(super) fn began(&self, input: usize) {
        self.change(input, |state| {
            if state.phase == Phase::Unused {
                state.phase = Phase::Listing;
            }
        });
    }

    /// The server said something; `objects` are known now.
    pub(super) fn event(&self, input: usize, now: Timestamp, objects: usize) {
        self.change(input, |state| {
            state.last_heard = Some(now);
            state.objects = objects;
        });
    }

    /// The last list lacks so many objects that stay until another does; none if it is believed.
    pub(super) fn doubts(&self, input: usize, lacking: usize) {
        self.change(input, |state| state.doubted = lacking);
    }

    /// Everything was read, or a stream of changes was opened after everything was.
    pub(super) fn follows(&self, input: usize, now: Timestamp) {
        self.change(input, |state| {
            if state.phase != Phase::Following {
                state.synced_since = Some(now);
            }
            state.phase = Phase::Following;
            state.trouble = None;
        });
    }

    /// The server does not know the kind of object.
    pub(super) fn absent(&self, input: usize, why: &ApiError) {
        self.change(input, |state| {
            state.phase = Phase::Absent;
            state.synced_since = None;
            state.trouble = Some(why.clone());
        });
    }

    /// Nothing came of a request, or of a stream.
    pub(super) fn failed(&self, input: usize, why: &ApiError) {
        self.change(input, |state| {
            if state.phase == Phase::Following {
                state.phase = Phase::Stale;
                state.synced_since = None;
            }
            state.trouble = Some(why.clone());
        });
    }

    /// The map stands for the Nodes, or why it does not.
    pub(super) fn lacks(&self, input: usize, lack: Option<MapGap>) {
        self.change(input, |state| state.lack = lack);
    }

    fn change(&self, input: usize, change: impl FnOnce(&mut ResourceStatus)) {
        self.lock().get_mut(input).map(change);
    }

    /// Nothing that could leave a state half written panics.
    fn lock(&self) -> std::sync::MutexGuard<'_, [ResourceStatus; RESOURCES.len()]> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
