//! The state of the loop.

use std::sync::Arc;
use std::time::Duration;

use cluster::index::Index;
use dataplane::crash_point::CrashPoint;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use tokio::sync::watch;
use tokio::time::Instant;
use topology_core::mirror::Mirror;
use topology_core::plan::Deadline;
use topology_core::resolve::Viewpoint;
use topology_core::snapshot::MarkedPort;
use topology_core::virtual_server::VirtualServerKey;

use super::addresses::HostAddresses;
use super::applied_settings::AppliedSettings;
use super::clock::Clock;
use super::counts::KernelTotals;
use super::desired::DesiredServices;
use super::disconnected_endpoints::DisconnectedEndpoints;
use super::flow_deletions::FlowDeletions;
use super::host_plan::Placement;
use super::infrastructure_changes::InfrastructureChanges;
use super::initial_read::InitialRead;
use super::other_proxy::OtherProxy;
use super::pending::PendingInput;
use super::periodic_check::PeriodicCheck;
use super::plan_queries::PlanQueries;
use super::retry::Agenda;
use super::schedulers::Schedulers;
use super::startup::Startup;
use super::trash::Trash;
use super::warnings::Warnings;
use crate::agent_config::AgentConfig;
use crate::agent_status::Aggregate;
use crate::endpoint_connections::EndpointConnections;
use crate::metrics::Metrics;
use crate::service_ports::{HealthPorts, LoopbackPorts};
use crate::state::Pulse;

/// An item that is retried or checked at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// The first pass could not start.
    Start,
    /// Our routes could not be read.
    RoutesRead,
    Routes,
    /// Routes of a family of which the node has no address: with IPv6 disabled for example the kernel refuses them.
    SourcelessRoutes,
    Tables,
    /// Our tables are being read.
    TablesRead,
    /// Connection tracking entries are being deleted.
    Flows,
    Server(VirtualServerKey),
    /// The decision of a Service, identified by one of its virtual servers, that depends on the time.
    Decision(VirtualServerKey),
}

impl Item {
    /// Whether it is about one virtual server; the others are about the whole node.
    pub(super) fn is_of_server(&self) -> bool {
        match self {
            Self::Server(_) | Self::Decision(_) => true,
            Self::Start
            | Self::RoutesRead
            | Self::Routes
            | Self::SourcelessRoutes
            | Self::Tables
            | Self::TablesRead
            | Self::Flows => false,
        }
    }
}

/// How the last writes of marks, tables and routes went.
#[derive(Debug, Default)]
pub(super) struct HostWrites {
    /// Whether the last write of firewall marks failed.
    pub(super) marks_failed: bool,
    /// Whether a pass waits for the tables: they are being read or written.
    pub(super) tables_wait: bool,
}

/// The loop's state, in parts with their own methods.
pub(crate) struct Reconciler<K, H> {
    pub(super) config: AgentConfig,
    pub(super) me: Viewpoint,
    pub(super) index: Index,
    pub(super) mirror: Mirror,
    pub(super) desired: DesiredServices,
    /// The decisions for the report.
    pub(super) aggregate: Aggregate,
    pub(super) agenda: Agenda<Item>,
    pub(super) addresses: HostAddresses,
    /// Of the last plan.
    pub(super) placement: Placement,
    pub(super) infrastructure: InfrastructureChanges,
    pub(super) disconnected: DisconnectedEndpoints,
    pub(super) warnings: Warnings,
    pub(super) schedulers: Schedulers,
    pub(super) counts: KernelTotals,
    pub(super) trash: Trash,
    /// Deadlines of real servers that have begun or ended since the last write.
    pub(super) unsaved_deadlines: Vec<Deadline>,
    pub(super) settings: AppliedSettings,
    pub(super) host_writes: HostWrites,
    pub(super) flow_deletions: FlowDeletions,
    pub(super) initial_read: InitialRead,
    pub(super) startup: Startup,
    pub(super) check: PeriodicCheck,
    pub(super) other_proxy: OtherProxy,
    pub(super) pending: PendingInput,
    pub(super) plan_queries: PlanQueries,
    pub(super) kernel: K,
    pub(super) host: H,
    pub(super) metrics: Metrics,
    pub(super) pulse: watch::Sender<Pulse>,
    pub(super) health_ports: HealthPorts,
    pub(super) loopback_ports: LoopbackPorts,
    pub(super) crash_point: Arc<CrashPoint>,
    pub(super) epoch: Instant,
    pub(super) clock: Clock,
}

/// The parts of a loop besides its configuration.
pub(crate) struct Parts<K, H> {
    pub(crate) kernel: K,
    pub(crate) host: H,
    pub(crate) infrastructure: InfrastructureChanges,
    pub(crate) endpoint_connections: EndpointConnections,
    /// The keys in the ownership record.
    pub(crate) ours: Vec<VirtualServerKey>,
    /// The deadlines of draining real servers from an earlier process.
    pub(crate) deadlines: Vec<Deadline>,
    /// The firewall marks of an earlier process.
    pub(crate) marks: Vec<(MarkedPort, u32)>,
    /// The origin of the loop's clock: the boot, because deadlines outlive the process.
    pub(crate) epoch: Instant,
    pub(crate) metrics: Metrics,
    pub(crate) pulse: watch::Sender<Pulse>,
    pub(crate) health_ports: HealthPorts,
    pub(crate) loopback_ports: LoopbackPorts,
    pub(crate) crash_point: Arc<CrashPoint>,
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    pub(crate) fn new(config: AgentConfig, parts: Parts<K, H>) -> Self {
        let Parts {
            kernel,
            host,
            infrastructure,
            endpoint_connections,
            ours,
            deadlines,
            marks,
            epoch,
            metrics,
            pulse,
            health_ports,
            loopback_ports,
            crash_point,
        } = parts;
        let mut mirror = Mirror::new(ours.iter().copied(), milliseconds(config.drain_timeout));
        mirror.restore_deadlines(&deadlines, milliseconds(epoch.elapsed()));
        restore_mark_protocols(&mut mirror, &marks);
        let index = restored_index(&config, marks);
        let me = Viewpoint {
            scheduler: config.scheduler,
            ..Viewpoint::new(Arc::clone(&config.node))
        };
        Self {
            me,
            index,
            mirror,
            desired: DesiredServices::default(),
            aggregate: Aggregate::default(),
            agenda: Agenda::new(),
            addresses: HostAddresses::default(),
            placement: Placement::default(),
            infrastructure,
            disconnected: DisconnectedEndpoints::new(endpoint_connections),
            warnings: Warnings::default(),
            schedulers: Schedulers::default(),
            counts: KernelTotals::default(),
            trash: Trash::new(),
            unsaved_deadlines: Vec::new(),
            settings: AppliedSettings::default(),
            host_writes: HostWrites::default(),
            flow_deletions: FlowDeletions::default(),
            initial_read: InitialRead::default(),
            startup: Startup::new(ours),
            check: PeriodicCheck::new(),
            other_proxy: OtherProxy::default(),
            pending: PendingInput::new(),
            plan_queries: PlanQueries::default(),
            config,
            kernel,
            host,
            metrics,
            pulse,
            health_ports,
            loopback_ports,
            crash_point,
            epoch,
            clock: Clock::set(),
        }
    }

    /// Milliseconds of the loop's clock.
    pub(super) fn now(&self) -> u64 {
        milliseconds(self.epoch.elapsed())
    }
}

fn restored_index(config: &AgentConfig, marks: Vec<(MarkedPort, u32)>) -> Index {
    let mut index = Index::new(config.service_cidrs.clone()).with_mark_mask(config.mark_mask);
    index.snapshot_mut().restore_firewall_marks(marks);
    index
}

fn restore_mark_protocols(mirror: &mut Mirror, marks: &[(MarkedPort, u32)]) {
    for (port, mark) in marks {
        mirror.set_mark_protocol(*mark, port.protocol);
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
