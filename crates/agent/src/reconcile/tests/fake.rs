//! A small kernel and a small machine in memory, with a journal of all writes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use dataplane::conntrack::{DeletedFlows, Flow, FlowDeletion, FlowDeletionError};
use dataplane::host::{Host, HostObjects, NodeNeeds, Prepared};
use dataplane::ipvs::{IpvsTimeouts, Kernel, KernelError, ListedServer, ServerReading, StepError};
use dataplane::nftables::{DesiredTables, ElementDelta, NftError, SetElement, TablesChange};
use dataplane::ownership::SettingChange;
use dataplane::routes::addresses::Interface;
use dataplane::routes::{LocalRoute, RouteDelta, RouteError, RouteReport};
use rustix::io::Errno;
use topology_core::mirror::{ObservedRealServer, ObservedServer, StepOutcome};
use topology_core::model::{Family, IpNetwork};
use topology_core::plan::{Deadline, Step};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::MarkedPort;
use topology_core::virtual_server::{RealServer, VirtualServerKey};

use crate::state::KernelServer;

/// Everything outside of the process. It survives a restart of the loop.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a part of the machine that fails by itself"
)]
pub(super) struct World {
    pub(super) servers: BTreeMap<VirtualServerKey, ObservedServer>,
    pub(super) connections: BTreeMap<(VirtualServerKey, IpAddr), u64>,
    pub(super) record: BTreeSet<VirtualServerKey>,
    pub(super) deadlines: BTreeMap<(VirtualServerKey, IpAddr, u16), u64>,
    /// Firewall marks on disk.
    pub(super) marks: BTreeMap<MarkedPort, u32>,
    /// When the machine booted.
    pub(super) booted: Option<tokio::time::Instant>,
    pub(super) routes: BTreeSet<LocalRoute>,
    /// Our routes as the process last read or wrote them.
    pub(super) known_routes: BTreeSet<LocalRoute>,
    /// Destinations for which another program has a route.
    pub(super) foreign_routes: BTreeSet<IpNetwork>,
    /// Desired routes that these keep away.
    pub(super) taken_routes: BTreeSet<LocalRoute>,
    /// The kernel refuses new routes of these families.
    pub(super) refused_routes: Vec<Family>,
    pub(super) routes_unreadable: bool,
    /// The number of comparisons of all routes.
    pub(super) route_comparisons: usize,
    pub(super) tables: DesiredTables,
    pub(super) addresses: Vec<Interface>,
    pub(super) journal: Vec<String>,
    /// Results that replace the kernel's own, by the text of the step. Each is used once.
    pub(super) faults: Vec<(String, Fault)>,
    /// The number of steps until the process is killed.
    pub(super) steps_left: Option<usize>,
    /// The number of lists of the table and reads of a key.
    pub(super) reads: usize,
    pub(super) unreadable: bool,
    /// If set, tables cannot be written; counts the attempts.
    pub(super) table_refusals: Option<usize>,
    pub(super) record_fails: bool,
    /// Whether the ownership record could not be written, so that the next write has all keys.
    pub(super) record_incomplete: bool,
    pub(super) marks_fail: bool,
    /// Whether marks could not be written, so that the next write has all.
    pub(super) marks_incomplete: bool,
    /// The number of polls that find the tables unread.
    pub(super) table_polls: usize,
    pub(super) addresses_unreadable: bool,
    /// Whether `nft` cannot list the tables.
    pub(super) tables_unreadable: bool,
    /// If not 0, the next write of the tables ends in the background, after so many polls.
    pub(super) table_load_polls: usize,
    /// The tables that are being written.
    pub(super) table_load: Option<DesiredTables>,
    /// Whether tables are written in the background, and that fails.
    pub(super) table_loads_fail: bool,
    /// Whether reading and writing tables never ends.
    pub(super) tables_hang: bool,
    /// Lists of foreign objects that cannot be read, a warning for each.
    pub(super) unlisted: Vec<String>,
    /// The error of each batch of connection tracking entries.
    pub(super) forget_fails: Option<FlowDeletionError>,
    /// Real servers with connection tracking entries that the kernel refuses to delete.
    pub(super) forget_refuses: BTreeSet<IpAddr>,
    /// Whether deleting connection tracking entries never ends.
    pub(super) forgetting_hangs: bool,
    /// The connection tracking entries that are being deleted.
    pub(super) forgetting: Option<BTreeSet<Flow>>,
    /// The routes when its deletion began.
    pub(super) routes_of_flow_deletion: BTreeSet<LocalRoute>,
    /// The number of batches.
    pub(super) batches: usize,
    /// Traces of another proxy.
    pub(super) other_proxy: Option<Vec<String>>,
    /// Chains that drop forwarded packets.
    pub(super) forwarding: Option<Vec<String>>,
    /// Schedulers that the kernel does not have.
    pub(super) lacking: BTreeSet<Scheduler>,
    /// The timeouts of IPVS.
    pub(super) timeouts: IpvsTimeouts,
    /// What decided about sysctls last.
    pub(super) needs: Option<NodeNeeds>,
    /// The number of times that sysctls were compared.
    pub(super) preparations: usize,
}

/// The fault of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The kernel refuses the step.
    Refused,
    /// The step is done, but the answer is lost.
    AnswerLost,
    /// The step is not done, and the answer is lost.
    Lost,
}

/// A handle to one world.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared(pub(super) Rc<RefCell<World>>);

impl World {
    /// The output of `ipvsadm-save -n`.
    pub(super) fn save(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, server) in &self.servers {
            let persistence = server
                .persistence
                .map_or(String::new(), |seconds| format!(" -p {seconds}"));
            lines.push(format!("-A {key} -s {}{persistence}", server.scheduler));
            let mut reals = server.real_servers.clone();
            reals.sort_by_key(|real| (real.address, real.port));
            for real in &reals {
                let at = std::net::SocketAddr::new(real.address, real.port);
                lines.push(format!("-a {key} -r {at} -m -w {}", real.weight));
            }
        }
        lines
    }

    /// The deadlines on disk, as a new process reads them.
    pub(super) fn saved_deadlines(&self) -> Vec<Deadline> {
        let saved = self.deadlines.iter();
        let deadline =
            |((key, address, port), until): (&(VirtualServerKey, IpAddr, u16), &u64)| Deadline {
                key: *key,
                address: *address,
                port: *port,
                until: Some(*until),
            };
        saved.map(deadline).collect()
    }

    /// The firewall marks on disk, as a new process reads them.
    pub(super) fn saved_marks(&self) -> Vec<(MarkedPort, u32)> {
        let saved = self.marks.iter();
        saved.map(|(port, mark)| (port.clone(), *mark)).collect()
    }

    /// Writes what differs from the known routes. Ignores routes that are gone already, and those whose addresses have
    /// another route, as the kernel's table does.
    fn change_routes(&mut self, delta: &RouteDelta) -> RouteReport {
        let mut report = RouteReport::default();
        for route in &delta.removed {
            self.taken_routes.remove(route);
        }
        let replaced = |route: &&LocalRoute| delta.added.iter().any(|added| added.to == route.to);
        let (first, last): (Vec<_>, Vec<_>) = delta.removed.iter().partition(replaced);
        self.remove_routes(&first, &mut report);
        for route in &delta.added {
            if self.known_routes.contains(route) {
                continue;
            }
            let mut routes = self.routes.iter();
            if self.foreign_routes.contains(&route.to) || routes.any(|held| held.to == route.to) {
                self.taken_routes.insert(*route);
                continue;
            }
            if self.refused_routes.contains(&Family::of_range(&route.to)) {
                report.failed.push((*route, "refused".to_owned()));
                continue;
            }
            self.routes.insert(*route);
            self.known_routes.insert(*route);
            self.journal.push(format!("+ {route}"));
            report.added.push(*route);
        }
        self.remove_routes(&last, &mut report);
        report
    }

    fn remove_routes(&mut self, routes: &[&LocalRoute], report: &mut RouteReport) {
        for route in routes {
            if self.known_routes.remove(route) && self.routes.remove(route) {
                self.journal.push(format!("- {route}"));
                report.removed.push(**route);
            }
        }
    }

    /// Fails if the ownership record cannot be written, and rewrites it after a failure.
    fn open_record(
        &mut self,
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()> {
        if self.record_fails {
            self.record_incomplete = true;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        if std::mem::take(&mut self.record_incomplete) {
            self.record = held.collect();
        }
        Ok(())
    }

    /// Applies a step as the kernel would.
    fn apply(&mut self, step: &Step) -> Result<(), StepOutcome> {
        match step {
            Step::AddServer {
                key,
                scheduler,
                persistence,
            } => {
                if self.servers.contains_key(key) {
                    return Err(StepOutcome::AlreadyExists);
                }
                let (scheduler, persistence) = (scheduler.name().into(), *persistence);
                let observed = ObservedServer {
                    scheduler,
                    persistence,
                    plain: true,
                    real_servers: Vec::new(),
                };
                self.servers.insert(*key, observed);
            }
            Step::EditServer {
                key,
                scheduler,
                persistence,
            } => {
                let server = self.server(key)?;
                (server.scheduler, server.persistence) = (scheduler.name().into(), *persistence);
                server.plain = true;
            }
            Step::DeleteServer { key } => {
                self.server(key)?;
                self.servers.remove(key);
            }
            Step::AddReal { key, real } => {
                let server = self.server(key)?;
                if find(server, real.address, real.port).is_some() {
                    return Err(StepOutcome::AlreadyExists);
                }
                server.real_servers.push(observed(real));
            }
            Step::EditReal { key, real } => self.edit(key, real)?,
            Step::DrainReal { key, address, port } => {
                self.edit(
                    key,
                    &RealServer {
                        address: *address,
                        port: *port,
                        weight: 0,
                    },
                )?;
            }
            Step::DeleteReal { key, address, port } => {
                let server = self.server(key)?;
                let at = find(server, *address, *port).ok_or(StepOutcome::Missing)?;
                server.real_servers.remove(at);
            }
            Step::DeleteFlows { .. } => {}
        }
        Ok(())
    }

    fn server(&mut self, key: &VirtualServerKey) -> Result<&mut ObservedServer, StepOutcome> {
        self.servers.get_mut(key).ok_or(StepOutcome::Missing)
    }

    fn edit(&mut self, key: &VirtualServerKey, real: &RealServer) -> Result<(), StepOutcome> {
        let server = self.server(key)?;
        let at = find(server, real.address, real.port).ok_or(StepOutcome::Missing)?;
        server.real_servers[at] = observed(real);
        Ok(())
    }

    fn reading(&self, key: &VirtualServerKey) -> Option<ServerReading> {
        let observed = self.servers.get(key)?.clone();
        let count = |real: &ObservedRealServer| {
            self.connections
                .get(&(*key, real.address))
                .copied()
                .unwrap_or(0)
        };
        let connections = observed.real_servers.iter().map(count).collect();
        Some(ServerReading {
            observed,
            connections,
        })
    }

    /// Whether a step needs a scheduler that the kernel does not have.
    fn lacks(&self, step: &Step) -> bool {
        let (Step::AddServer { scheduler, .. } | Step::EditServer { scheduler, .. }) = step else {
            return false;
        };
        self.lacking.contains(scheduler)
    }

    fn fault(&mut self, step: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(text, _)| text == step)?;
        Some(self.faults.remove(at).1)
    }
}

fn find(server: &ObservedServer, address: IpAddr, port: u16) -> Option<usize> {
    server
        .real_servers
        .iter()
        .position(|real| (real.address, real.port) == (address, port))
}

fn observed(real: &RealServer) -> ObservedRealServer {
    let RealServer {
        address,
        port,
        weight,
    } = *real;
    ObservedRealServer {
        address,
        port,
        weight,
        plain: true,
    }
}

impl Kernel for Shared {
    async fn list(&mut self) -> Result<Vec<ListedServer>, KernelError> {
        let mut world = self.0.borrow_mut();
        world.reads += 1;
        if world.unreadable {
            return Err(KernelError::new("the table cannot be read"));
        }
        let bare = |observed: &ObservedServer| ObservedServer {
            real_servers: Vec::new(),
            ..observed.clone()
        };
        Ok(world
            .servers
            .iter()
            .map(|(key, observed)| ListedServer {
                key: *key,
                observed: bare(observed),
            })
            .collect())
    }

    async fn fill(&mut self, listed: ListedServer) -> Result<Option<ServerReading>, KernelError> {
        Ok(self.0.borrow().reading(&listed.key))
    }

    async fn read(&mut self, key: &VirtualServerKey) -> Result<Option<ServerReading>, KernelError> {
        let mut world = self.0.borrow_mut();
        world.reads += 1;
        if world.unreadable {
            return Err(KernelError::new("the table cannot be read"));
        }
        Ok(world.reading(key))
    }

    async fn show(&mut self, _: &VirtualServerKey) -> Result<Option<KernelServer>, KernelError> {
        Ok(None)
    }

    async fn apply(&mut self, steps: &[Step]) -> Vec<Result<(), StepError>> {
        let mut world = self.0.borrow_mut();
        let mut results = Vec::new();
        for step in steps {
            if let Some(left) = &mut world.steps_left {
                if *left == 0 {
                    // The process was killed, so the step never arrives.
                    results.push(Err(StepOutcome::Unknown));
                    continue;
                }
                *left -= 1;
            }
            let result = match world.fault(&step.to_string()) {
                None if world.lacks(step) => Err(StepOutcome::Failed),
                None => world.apply(step),
                Some(Fault::Refused) => Err(StepOutcome::Failed),
                Some(Fault::Lost) => Err(StepOutcome::Unknown),
                Some(Fault::AnswerLost) => world.apply(step).and(Err(StepOutcome::Unknown)),
            };
            world
                .journal
                .push(format!("{step}{}", if result.is_ok() { "" } else { " !" }));
            results.push(result);
        }
        let error = |step: &Step, outcome| StepError {
            outcome,
            no_scheduler: world.lacks(step),
            text: format!("{outcome:?}"),
        };
        steps
            .iter()
            .zip(results)
            .map(|(step, result)| result.map_err(|outcome| error(step, outcome)))
            .collect()
    }

    async fn timeouts(&mut self) -> Result<IpvsTimeouts, KernelError> {
        Ok(self.0.borrow().timeouts)
    }

    async fn set_timeouts(&mut self, timeouts: IpvsTimeouts) -> Result<(), KernelError> {
        let mut world = self.0.borrow_mut();
        let IpvsTimeouts { tcp, tcp_fin, udp } = timeouts;
        let held = &mut world.timeouts;
        held.tcp = tcp.or(held.tcp);
        held.tcp_fin = tcp_fin.or(held.tcp_fin);
        held.udp = udp.or(held.udp);
        world.journal.push("set timeouts".to_owned());
        Ok(())
    }
}

impl Host for Shared {
    fn claim(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()> {
        let mut world = self.0.borrow_mut();
        world.open_record(held)?;
        for key in keys {
            world.record.insert(*key);
            world.journal.push(format!("claim {key}"));
        }
        Ok(())
    }

    fn release(
        &mut self,
        keys: &[VirtualServerKey],
        held: &mut dyn Iterator<Item = VirtualServerKey>,
    ) -> std::io::Result<()> {
        let mut world = self.0.borrow_mut();
        if world.steps_left == Some(0) {
            return Ok(());
        }
        world.open_record(held)?;
        for key in keys {
            world.record.remove(key);
            world.journal.push(format!("release {key}"));
        }
        Ok(())
    }

    fn save_deadlines(
        &mut self,
        changed: &[Deadline],
        _: &mut dyn Iterator<Item = Deadline>,
    ) -> std::io::Result<()> {
        let mut world = self.0.borrow_mut();
        if world.record_fails {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        if world.steps_left == Some(0) {
            return Ok(());
        }
        for deadline in changed {
            let real = (deadline.key, deadline.address, deadline.port);
            match deadline.until {
                Some(until) => drop(world.deadlines.insert(real, until)),
                None => drop(world.deadlines.remove(&real)),
            }
        }
        Ok(())
    }

    fn save_marks(
        &mut self,
        changed: &[(MarkedPort, Option<u32>)],
        held: &mut dyn Iterator<Item = (MarkedPort, u32)>,
    ) -> std::io::Result<()> {
        let mut world = self.0.borrow_mut();
        if world.marks_fail {
            world.marks_incomplete = true;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        if world.steps_left == Some(0) {
            return Ok(());
        }
        if std::mem::take(&mut world.marks_incomplete) {
            world.marks = held.collect();
            world.journal.push("marks".to_owned());
            return Ok(());
        }
        for (port, mark) in changed {
            let MarkedPort {
                service, port_name, ..
            } = port;
            let line = if let Some(mark) = mark {
                world.marks.insert(port.clone(), *mark);
                format!("mark {service}:{port_name} {mark:#x}")
            } else {
                world.marks.remove(port);
                format!("no mark {service}:{port_name}")
            };
            world.journal.push(line);
        }
        Ok(())
    }

    async fn addresses(&mut self) -> Result<(Vec<Interface>, Vec<IpAddr>), RouteError> {
        if self.0.borrow().addresses_unreadable {
            return Err(netlink_pipeline::Error::TimedOut.into());
        }
        Ok((self.0.borrow().addresses.clone(), Vec::new()))
    }

    async fn read_routes(&mut self) -> Result<(), RouteError> {
        let mut world = self.0.borrow_mut();
        if world.routes_unreadable {
            return Err(RouteError::NoLoopback(Errno::NOMEM));
        }
        world.known_routes = world.routes.clone();
        world.taken_routes.clear();
        Ok(())
    }

    async fn set_routes(
        &mut self,
        desired: &BTreeSet<LocalRoute>,
    ) -> Result<RouteReport, RouteError> {
        let mut world = self.0.borrow_mut();
        world.route_comparisons += 1;
        world.taken_routes.retain(|route| desired.contains(route));
        let known = &world.known_routes;
        let added = desired.difference(known);
        let is_free = |route: &&LocalRoute| !world.taken_routes.contains(route);
        let delta = RouteDelta {
            added: added.filter(is_free).copied().collect(),
            removed: known.difference(desired).copied().collect(),
        };
        Ok(world.change_routes(&delta))
    }

    async fn change_routes(&mut self, delta: &RouteDelta) -> Result<RouteReport, RouteError> {
        Ok(self.0.borrow_mut().change_routes(delta))
    }

    async fn add_taken_routes(&mut self) -> Result<RouteReport, RouteError> {
        let mut world = self.0.borrow_mut();
        let delta = RouteDelta {
            added: std::mem::take(&mut world.taken_routes),
            removed: BTreeSet::new(),
        };
        Ok(world.change_routes(&delta))
    }

    async fn begin_observe_tables(&mut self) {}

    async fn poll_tables(&mut self) -> Option<Result<(), NftError>> {
        let mut world = self.0.borrow_mut();
        if world.tables_hang {
            return None;
        }
        world.table_load_polls = world.table_load_polls.saturating_sub(1);
        if world.table_load.is_some() && world.table_load_polls > 0 {
            return None;
        }
        if let Some(loaded) = world.table_load.take() {
            world.journal.push("tables".to_owned());
            world.tables = loaded;
        }
        let left = world.table_polls.checked_sub(1);
        world.table_polls = left.unwrap_or_default();
        let ended = if world.tables_unreadable || world.table_loads_fail {
            Err(NftError::Missing)
        } else {
            Ok(())
        };
        left.is_none().then_some(ended)
    }

    fn tables_lack(&mut self, desired: &DesiredTables) -> bool {
        self.0.borrow().tables.lacks_any_of(desired)
    }

    fn tables_hold(&self, elements: &[SetElement]) -> bool {
        let world = self.0.borrow();
        elements
            .iter()
            .all(|(set, element)| world.tables.contains(*set, element))
    }

    async fn apply_tables(&mut self, desired: &DesiredTables) -> Result<TablesChange, NftError> {
        let mut world = self.0.borrow_mut();
        if world.tables_hang || world.table_loads_fail || world.table_load.is_some() {
            return Ok(TablesChange::Pending);
        }
        if world.table_load_polls > 0 && world.tables != *desired {
            world.table_load = Some(desired.clone());
            return Ok(TablesChange::Pending);
        }
        if let Some(times) = &mut world.table_refusals {
            *times += 1;
            return Err(NftError::Missing);
        }
        let changed = world.tables != *desired;
        if changed {
            world.journal.push("tables".to_owned());
            world.tables = desired.clone();
        }
        Ok(if changed {
            TablesChange::Written
        } else {
            TablesChange::Same
        })
    }

    fn can_apply_elements(&self, delta: &ElementDelta) -> bool {
        let world = self.0.borrow();
        delta.is_empty() || (world.table_load.is_none() && world.table_load_polls == 0)
    }

    async fn apply_elements(&mut self, delta: &ElementDelta) -> Result<bool, NftError> {
        let mut world = self.0.borrow_mut();
        if world.table_refusals.is_some() {
            return Err(NftError::Missing);
        }
        let delta = world.tables.missing_of(delta);
        for (set, element) in &delta.added {
            world.journal.push(format!("tables + {set}: {element}"));
        }
        for (set, element) in &delta.removed {
            world.journal.push(format!("tables - {set}: {element}"));
        }
        world.tables.apply(&delta);
        Ok(!delta.is_empty())
    }

    fn begin_flow_deletion(&mut self, flows: BTreeSet<Flow>) {
        let mut world = self.0.borrow_mut();
        assert!(world.forgetting.is_none(), "one batch at a time");
        world.forgetting = Some(flows);
        world.routes_of_flow_deletion = world.routes.clone();
    }

    fn poll_flow_deletion(&mut self) -> Option<FlowDeletion> {
        let mut world = self.0.borrow_mut();
        if world.forgetting_hangs {
            return None;
        }
        let flows = world.forgetting.take().expect("a batch");
        if let Some(error) = &world.forget_fails {
            return Some(Err(error.clone()));
        }
        world.batches += 1;
        world.journal.extend(flows.iter().map(|flow| {
            let any = Flow::of_server(flow.server) == *flow;
            let of = if any { " of any" } else { "" };
            format!("forget {}:{}{of}", flow.server.0, flow.server.1)
        }));
        let is_refused = |flow: &Flow| world.forget_refuses.contains(&flow.server.0);
        let refused = flows.iter().copied().filter(is_refused);
        Some(Ok(DeletedFlows {
            refused: refused.map(|flow| (flow, "busy".to_owned())).collect(),
            ..DeletedFlows::default()
        }))
    }

    async fn prepare(&mut self, needs: NodeNeeds) -> Prepared {
        let mut world = self.0.borrow_mut();
        world.preparations += 1;
        let before = world.needs.replace(needs);
        if needs.hashes && !before.is_some_and(|needs| needs.hashes) {
            world.journal.push("sloppy_tcp".to_owned());
        }
        let is_off = |needs: NodeNeeds| needs.estimation == Some(false);
        if is_off(needs) && !before.is_some_and(is_off) {
            world.journal.push("estimation off".to_owned());
        }
        Prepared::default()
    }

    fn record_setting(&mut self, change: &SettingChange) -> std::io::Result<()> {
        self.0.borrow_mut().journal.push(format!("record {change}"));
        Ok(())
    }

    fn other_proxy(&mut self) -> Option<Vec<String>> {
        self.0.borrow_mut().other_proxy.take()
    }

    fn forwarding(&mut self) -> Option<Vec<String>> {
        self.0.borrow_mut().forwarding.take()
    }

    async fn list_objects(&mut self, _: &BTreeSet<IpNetwork>) -> HostObjects {
        HostObjects {
            failures: self.0.borrow().unlisted.clone(),
            ..HostObjects::default()
        }
    }
}
