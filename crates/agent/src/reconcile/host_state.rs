//! Applies the desired routes and tables.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use cluster::claims;
use cluster::object::{Kind, ObjectKey};
use cluster::warning::Warning;
use dataplane::host::Host;
use dataplane::ipvs::Kernel;
use dataplane::nftables::{Element, ElementDelta, NftError, SetElement, TablesChange};
use dataplane::routes::addresses::NodeIps;
use dataplane::routes::{LocalRoute, RouteDelta, RouteError, RouteReport};
use topology_core::model::{Frontend, FrontendKind, ObjectName, Service};

use super::addresses::HostAddresses;
use super::clients::ClientConfig;
use super::host_plan::{HostInput, HostPlan, elements_of, host_plan, is_own_pair};
use super::reconciler::{Item, Reconciler};
use crate::node_warning::Topic;

/// How long the retry of the tables is delayed while a process writes them, in milliseconds.
const AT_MOST: u64 = 60_000;

/// The work besides virtual servers.
pub(super) enum HostChange {
    /// Compare everything.
    Everything(HostPlan),
    /// Add or remove single elements of the tables, and single routes.
    Single(ElementDelta, RouteDelta),
}

impl HostChange {
    /// Whether the pass depends on routes or tables.
    pub(super) fn is_needed(&self) -> bool {
        match self {
            Self::Everything(_) => true,
            Self::Single(delta, routes) => !delta.is_empty() || !routes.is_empty(),
        }
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads the node's addresses. Returns those that were added or removed; after an error the previous ones stay.
    pub(super) async fn read_addresses(&mut self) -> BTreeSet<IpAddr> {
        self.try_read_addresses().await.unwrap_or_default()
    }

    /// Does the same and returns the error, which is already a warning.
    pub(super) async fn try_read_addresses(&mut self) -> Result<BTreeSet<IpAddr>, String> {
        let (interfaces, default_sources) = match self.host.addresses().await {
            Ok(read) => read,
            Err(error) => {
                let text = error.to_string();
                self.warnings.set(Topic::Routes, vec![text.clone()]);
                return Err(text);
            }
        };
        let read = HostAddresses::new(interfaces, default_sources);
        Ok(self.addresses.replace(read))
    }

    /// Selects the addresses for node ports again. Returns the Services that this affects.
    pub(super) fn update_node_port_addresses(&mut self) -> Vec<ObjectName> {
        let snapshot = self.index.snapshot();
        let node = snapshot.node(&self.me.node);
        let node = node.map_or(&[][..], |node| &node.addresses);
        let NodeIps { v4, v6 } = self.addresses.node_ips(&self.config.node_ips, node);
        let primary: Vec<IpAddr> = v4.into_iter().chain(v6).collect();
        let config = &self.config.node_port_addresses;
        let selected = config.select(self.addresses.all(), &primary);
        let before = &self.me.node_port_addresses;
        let moved: BTreeSet<IpAddr> = selected.symmetric_difference(before).copied().collect();
        if moved.is_empty() {
            return Vec::new();
        }
        self.me.node_port_addresses = Arc::new(selected);
        // At such an address a node port may have the number of another Service's port.
        let is_there = |frontend: &Frontend| {
            frontend.kind == FrontendKind::NodePort || moved.contains(&frontend.address)
        };
        let uses_them = |service: &&Service| {
            service.health_check_node_port.is_some() || service.frontends.iter().any(is_there)
        };
        let services = snapshot.services().filter(uses_them);
        services.map(|service| service.name.clone()).collect()
    }

    /// Computes the desired routes and tables, and the warnings about addresses.
    pub(super) fn host_plan(&mut self) -> HostPlan {
        let (plan, warnings) = host_plan(&HostInput {
            snapshot: self.index.snapshot(),
            node: &self.me.node,
            desired: &self.desired,
            addresses: &self.addresses,
            node_ips: &self.config.node_ips,
            clients: ClientConfig {
                cluster_cidrs: &self.config.cluster_cidrs,
                detect_local: &self.config.detect_local,
                masquerade_all: self.config.masquerade_all,
                strict_arp: self.config.strict_arp,
            },
        });
        self.warnings.set(Topic::Addresses, warnings);
        self.placement.clone_from(&plan.placement);
        plan
    }

    /// Warns about Nodes with addresses of Services. Only at the start and at each periodic check: a Node that changes
    /// its addresses all the time costs one line per check.
    pub(super) fn warn_of_claims(&mut self) {
        let (snapshot, me) = (self.index.snapshot(), &self.me.node);
        let own = claims::warning_of(snapshot, me);
        let mut others = claims::warnings(snapshot, |_key| None);
        let mine = ObjectKey::global(Kind::Node, me);
        others.retain(|warning| warning.subject.key() != Some(&mine));
        let lines = |warnings: &[Warning]| warnings.iter().map(ToString::to_string).collect();
        self.warnings.set(Topic::OwnClaim, lines(own.as_slice()));
        self.warnings.set(Topic::NodeClaim, lines(&others));
    }

    /// The work that is due; everything if `all`. A Service address changes more than itself if it is the first or the last
    /// of its family.
    pub(super) fn host_change(&mut self, all: bool) -> HostChange {
        let routes = self.placement.route_delta(self.desired.take_vip_delta());
        let mut delta = self.desired.take_element_delta();
        delta.added.extend(elements_of(&routes.added));
        delta.removed.extend(elements_of(&routes.removed));
        let own = self.addresses.all();
        for elements in [&mut delta.added, &mut delta.removed] {
            elements.retain(|element| !is_own_pair(element, &own));
        }
        let is_single = self.desired.vip_families() == self.placement.families
            && self.agenda.failure(&Item::Routes).is_none()
            && self.host.can_apply_elements(&delta);
        if all || !is_single {
            return HostChange::Everything(self.host_plan());
        }
        HostChange::Single(delta, routes)
    }

    /// Writes the tables that must be in place before virtual servers. Returns the number of writes.
    pub(super) async fn apply_before_servers(&mut self, change: &HostChange) -> usize {
        match change {
            HostChange::Everything(plan) if self.host.tables_lack(&plan.tables) => {
                self.apply_tables(plan).await
            }
            HostChange::Everything(_) => 0,
            HostChange::Single(delta, _) => {
                let ElementDelta { added, removed } = delta;
                let added = added.iter().filter(|element| !is_mark(element));
                let removed = removed.iter().filter(|element| is_mark(element));
                self.apply_elements(ElementDelta {
                    added: added.copied().collect(),
                    removed: removed.copied().collect(),
                })
                .await
            }
        }
    }

    /// Writes the routes and the remaining tables. Returns the number of writes.
    pub(super) async fn apply_after_servers(&mut self, change: HostChange) -> usize {
        match change {
            HostChange::Everything(plan) => {
                let routes = self.host.set_routes(&plan.routes).await;
                let routes = self.routes_ended(routes, RouteScope::All);
                // Anything that is still missing was refused a moment ago.
                if self.host.tables_lack(&plan.tables) {
                    return routes;
                }
                routes + self.apply_tables(&plan).await
            }
            HostChange::Single(mut delta, routes) => {
                delta.added.retain(is_mark);
                delta.removed.retain(|element| !is_mark(element));
                self.change_routes(&routes).await + self.apply_elements(delta).await
            }
        }
    }

    /// If the kernel refuses, the tables are unknown and are written again.
    async fn apply_elements(&mut self, delta: ElementDelta) -> usize {
        if delta.is_empty() {
            return 0;
        }
        match self.host.apply_elements(&delta).await {
            Ok(written) => usize::from(written),
            Err(error) => {
                tracing::debug!("{error}");
                let plan = self.host_plan();
                self.apply_tables(&plan).await
            }
        }
    }

    async fn apply_tables(&mut self, plan: &HostPlan) -> usize {
        let applied = self.host.apply_tables(&plan.tables).await;
        self.host_writes.tables_wait = matches!(applied, Ok(TablesChange::Pending));
        match applied {
            Ok(TablesChange::Pending) => {
                // A due retry has become the running process, whose result decides. The failure lasts until then.
                let now = self.now();
                self.agenda.put_off(&Item::Tables, now, now + AT_MOST);
                self.await_tables();
                0
            }
            Ok(set) => {
                self.agenda.succeeded(&Item::Tables);
                self.warnings.set(Topic::Tables, Vec::new());
                usize::from(set == TablesChange::Written)
            }
            Err(error) => {
                self.tables_failed(&error);
                0
            }
        }
    }

    /// Warns, and schedules a retry.
    pub(super) fn tables_failed(&mut self, error: &NftError) {
        let (text, now) = (error.to_string(), self.now());
        self.warnings.set(Topic::Tables, vec![text.clone()]);
        self.agenda.failed(&Item::Tables, text, now);
    }

    async fn change_routes(&mut self, routes: &RouteDelta) -> usize {
        if routes.is_empty() {
            return 0;
        }
        let ended = self.host.change_routes(routes).await;
        self.routes_ended(ended, RouteScope::Single)
    }

    /// Adds routes that another program had, if it has them no more.
    pub(super) async fn add_taken_routes(&mut self) {
        // The retry of routes that failed adds these, too.
        if self.agenda.failure(&Item::Routes).is_some() {
            return;
        }
        match self.host.add_taken_routes().await {
            Ok(report) if report.added.is_empty() && report.failed.is_empty() => {}
            ended => {
                self.routes_ended(ended, RouteScope::Single);
            }
        }
    }

    fn routes_ended(&mut self, ended: Result<RouteReport, RouteError>, scope: RouteScope) -> usize {
        match ended {
            Ok(report) => self.routes_set(&report, scope),
            Err(error) => {
                self.routes_failed(&Item::Routes, &[error.to_string()]);
                self.warnings.set(Topic::Routes, vec![error.to_string()]);
                0
            }
        }
    }

    fn routes_set(&mut self, report: &RouteReport, scope: RouteScope) -> usize {
        let RouteReport {
            added,
            removed,
            failed,
        } = report;
        for route in added {
            tracing::debug!("ip route add {route}");
        }
        for route in removed {
            tracing::debug!("ip route del {route}");
        }
        let has_source = self.placement.has_source();
        let is_sourceless =
            |(route, _): &&(LocalRoute, String)| has_source && route.source.is_none();
        let (sourceless, own): (Vec<_>, Vec<_>) = failed.iter().partition(is_sourceless);
        let words = |(route, error): &(LocalRoute, String)| {
            format!("route {route} cannot be set: {error}; see that link lo is up")
        };
        let mut all_lines = Vec::new();
        for (item, failed) in [(Item::Routes, own), (Item::SourcelessRoutes, sourceless)] {
            let lines: Vec<String> = failed.into_iter().map(words).collect();
            if !lines.is_empty() {
                self.routes_failed(&item, &lines);
            } else if scope == RouteScope::All {
                self.agenda.succeeded(&item);
            }
            all_lines.extend(lines);
        }
        if scope == RouteScope::All || !all_lines.is_empty() {
            let unread = self.agenda.failure(&Item::RoutesRead);
            all_lines.extend(unread.map(|failure| failure.error.clone()));
            self.warnings.set(Topic::Routes, all_lines);
        }
        added.len() + removed.len()
    }

    fn routes_failed(&mut self, item: &Item, lines: &[String]) {
        let now = self.now();
        self.agenda.failed(item, lines.join("; "), now);
    }
}

/// What a write of routes was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RouteScope {
    All,
    /// Some routes; it says nothing about the others.
    Single,
}

/// Whether the element marks packets. It is added after the virtual server of the mark serves and removed before it
/// drains, so that new connections use the virtual server of the address instead of being refused.
fn is_mark((_, element): &SetElement) -> bool {
    matches!(element, Element::Mark(..))
}
