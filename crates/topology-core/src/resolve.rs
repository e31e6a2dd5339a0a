//! Resolves a Service of a [`Snapshot`] for one node: its virtual servers, with the reason for every endpoint.
//!
//! For each Service port and address family, `candidates` collects the endpoints of the port without duplicates.
//! `source` finds what decides: traffic policy Local, a policy, hints, or nothing. Then the stages run in the order of
//! [`STAGES`]. Each stage is one file, which documents its rule.

mod achieved;
mod candidates;
pub mod categorize;
mod conclude;
mod decision;
mod demand;
mod drains;
mod endpoint_limit;
mod finding;
mod headless;
mod infrastructure;
mod other_use;
mod port_view;
mod ramp;
mod reason;
mod record;
mod resolution;
mod s00_usable;
mod s01_drains;
mod s02_avoid;
mod s03_panic;
mod s04_levels;
mod s05_thresholds;
mod s06_empty;
mod s07_spill;
mod s08_cap;
mod s09_share;
mod s10_weights;
mod s11_emit;
mod source;
mod stages;
mod subset;
mod targets;
mod time;
mod viewpoint;
mod work;

use std::borrow::Cow;
use std::net::IpAddr;

use rustc_hash::FxHashSet;

pub use decision::{Decision, EndpointDecision, LevelDecision, Lost, LostBecause, Note, Refusal};
pub use finding::{Finding, FindingKind, Precedence};
pub use headless::{HeadlessService, resolve_headless};
pub use infrastructure::{AddressUse, Infrastructure, NodeInfrastructure};
pub use reason::Reason;
pub use record::{Fact, StageRecord};
pub use resolution::{Clients, Resolution, ResolvedServer};
pub use stages::{STAGES, Stage};
pub use viewpoint::Viewpoint;

use crate::model::{Family, Frontend, FrontendKind, ObjectName, Service};
use crate::scheduler::Scheduler;
use crate::snapshot::{Claimant, Snapshot};
use crate::virtual_server::VirtualServerKey;
use drains::Drains;
use port_view::{OutsideClients, PortView};
use source::Sources;
use stages::TOGETHER;
use targets::Targets;

/// Resolves the Service `name` as seen from `me`; an empty result if it does not exist.
pub fn resolve(snapshot: &Snapshot, me: &Viewpoint, name: &ObjectName) -> Resolution {
    let mut resolution = Resolution::default();
    let Some(service) = snapshot.service(name) else {
        return resolution;
    };
    let frontends: Vec<Frontend> = me.frontends(service).collect();
    let slices = endpoint_limit::limited(service, &frontends, snapshot.slices(name), &me.node);
    if matches!(slices, Cow::Owned(_)) {
        resolution.findings.push(Finding {
            service: name.clone(),
            port_name: "".into(),
            kind: FindingKind::TooManyRealServers,
        });
    }
    let targets = Targets::of(service.ports.len(), &slices);
    let own_node = snapshot.node(&me.node);
    let names: Vec<&str> = service.ports.iter().map(|port| &*port.name).collect();
    let mut sources = Sources::of(snapshot, service, own_node, &names);
    let mut keys = FxHashSet::default();
    let mut known = FxHashSet::default();
    for port in &service.ports {
        let mut split = Vec::new();
        let first = resolution.servers.len();
        for &frontend in &frontends {
            let Some(number) = frontend.port_of(port) else {
                continue;
            };
            let view = PortView {
                snapshot,
                me,
                service,
                targets: targets.of_port(port, Family::of(frontend.address)),
                port,
                frontend,
                number,
                outside: None,
                own_node,
            };
            if let Some(kind) = view.obstacle(&keys) {
                resolution
                    .findings
                    .extend(view.finding_once(kind, &mut known));
                continue;
            }
            let earlier = resolution.servers.get(first..).unwrap_or_default();
            match view.same_decision(earlier).cloned() {
                Some(earlier) => view.repeat(earlier, &mut resolution),
                None => view.resolve(&mut sources, &mut resolution),
            }
            let claims = view.claims_of_others().into_iter();
            let claims = claims.filter_map(|kind| view.finding_once(kind, &mut known));
            resolution.findings.extend(claims);
            keys.insert(view.key());
            if service.splits_clients() && frontend.kind.is_external() {
                split.push(view);
            }
        }
        resolve_outside(&split, &mut sources, &mut resolution);
    }
    resolution
}

/// Resolves the Service `name` as its clients reach it: [`resolve_headless`] for a headless one, [`resolve`] for others.
pub fn resolve_for_clients(snapshot: &Snapshot, me: &Viewpoint, name: &ObjectName) -> Resolution {
    let service = snapshot.service(name);
    if service.is_some_and(Service::is_headless) {
        resolve_headless(snapshot, me, name)
    } else {
        resolve(snapshot, me, name)
    }
}

/// Resolves a port for the outside clients of all its external frontends.
fn resolve_outside<'a>(
    split: &[PortView<'a>],
    sources: &mut Sources<'a>,
    resolution: &mut Resolution,
) {
    for family in [Family::V4, Family::V6] {
        resolve_outside_of(split, family, sources, resolution);
    }
}

fn resolve_outside_of<'a>(
    split: &[PortView<'a>],
    family: Family,
    sources: &mut Sources<'a>,
    resolution: &mut Resolution,
) {
    let of_family = || split.iter().filter(|view| view.family() == family);
    let Some(first) = of_family().next() else {
        return;
    };
    let Some(mark) = first.snapshot.firewall_mark(first.service, first.port) else {
        resolution
            .findings
            .push(first.finding(FindingKind::NoFirewallMark));
        return;
    };
    let outside = OutsideClients {
        mark,
        frontends: of_family().map(PortView::listener).collect(),
    };
    let view = PortView {
        outside: Some(outside),
        targets: first.targets.clone(),
        ..*first
    };
    view.resolve(sources, resolution);
}

impl<'a> PortView<'a> {
    /// Why the frontend must not be programmed for this Service, given its previous virtual servers.
    fn obstacle(&self, so_far: &FxHashSet<VirtualServerKey>) -> Option<FindingKind> {
        let unusable = self.unusable_address();
        let refused = unusable.or_else(|| self.infrastructure_refused());
        if let Some(kind) = refused.or_else(|| self.taken()) {
            return Some(kind);
        }
        let repeated = so_far.contains(&self.key());
        repeated.then(|| FindingKind::PortRepeated {
            frontend: self.listener(),
        })
    }

    /// The finding if another Service comes first.
    fn taken(&self) -> Option<FindingKind> {
        let (frontend, owner) = self.snapshot.first_owner_of(&self.claims())?;
        if owner.name == self.service.name {
            return None;
        }
        Some(FindingKind::FrontendTaken {
            frontend,
            owner: owner.name.clone(),
            precedence: self.precedence(owner),
        })
    }

    /// Why `owner` gets the frontend.
    fn precedence(&self, owner: &Claimant) -> Precedence {
        if self.frontend.kind.is_external() && !owner.is_external {
            Precedence::ClusterIp
        } else if owner.created < self.service.created.unwrap_or(i64::MAX) {
            Precedence::Older
        } else {
            Precedence::Name
        }
    }

    /// Why the address cannot be used. An address of this node can be an external one: its other ports stay the node's.
    fn unusable_address(&self) -> Option<FindingKind> {
        let Frontend { kind, address } = self.frontend;
        if kind == FrontendKind::NodePort {
            return None;
        }
        if let Some(problem) = candidates::special(address) {
            return Some(match kind {
                FrontendKind::ClusterIp => FindingKind::BadClusterIp { address, problem },
                FrontendKind::NodePort | FrontendKind::ExternalIp | FrontendKind::LoadBalancer => {
                    FindingKind::BadExternalAddress {
                        kind,
                        address,
                        problem,
                    }
                }
            });
        }
        let own_node = self.own_node;
        let is_own = own_node.is_some_and(|node| node.addresses.contains(&address));
        let is_usable = if is_own {
            kind.is_external()
        } else {
            self.is_kept()
        };
        if is_usable {
            return None;
        }
        let node = self.snapshot.conflicting_node(address, &self.me.node)?;
        let node = node.name.clone();
        Some(FindingKind::NodeAddress {
            kind,
            address,
            node,
        })
    }

    /// What others use the address for, if it stays with the Service.
    fn claims_of_others(&self) -> Vec<FindingKind> {
        if !self.is_kept() {
            return Vec::new();
        }
        let Frontend { kind, address } = self.frontend;
        let infrastructure = self.other_use();
        let infrastructure = infrastructure.map(FindingKind::ServedInfrastructureAddress);
        let node = self.snapshot.conflicting_node(address, &self.me.node);
        let node = node.map(|node| FindingKind::ClaimedByNode {
            kind,
            address,
            node: node.name.clone(),
        });
        node.into_iter().chain(infrastructure).collect()
    }

    /// The finding; `None` if it is about a whole address and was made for an earlier port.
    fn finding_once(&self, kind: FindingKind, known: &mut FxHashSet<IpAddr>) -> Option<Finding> {
        let Some(address) = kind.whole_address() else {
            return Some(self.finding(kind));
        };
        known.insert(address).then(|| Finding {
            port_name: "".into(),
            ..self.finding(kind)
        })
    }

    fn finding(&self, kind: FindingKind) -> Finding {
        Finding {
            service: self.service.name.clone(),
            port_name: self.port.name.clone(),
            kind,
        }
    }

    /// An earlier virtual server of the port whose decision holds for this frontend too. A decision depends on the
    /// frontend by its family, its traffic policy and its memory, and under `dh` by its address.
    fn same_decision<'r>(&self, earlier: &'r [ResolvedServer]) -> Option<&'r ResolvedServer> {
        let memory = |key| self.me.memory.of(&self.service.name, key);
        let own = self.key();
        earlier.iter().find(|resolved| {
            let server = &resolved.server;
            let policy = self.traffic_policy_of(resolved.kind);
            server.key.family() == self.family()
                && policy == self.traffic_policy()
                && server.scheduler != Scheduler::Dh
                && memory(&server.key) == memory(&own)
        })
    }

    /// Resolves as the `earlier` virtual server with the same decision.
    fn repeat(&self, mut earlier: ResolvedServer, resolution: &mut Resolution) {
        let endpoints = earlier.decision.endpoints.iter();
        let refused = endpoints.filter(|endpoint| endpoint.reason == Reason::BadAddress);
        let findings = refused.map(|endpoint| self.bad_endpoint(endpoint.address));
        resolution.findings.extend(findings);
        earlier.server.key = self.key();
        earlier.kind = self.frontend.kind;
        earlier.clients = self.clients();
        resolution.servers.push(earlier);
    }

    fn bad_endpoint(&self, address: IpAddr) -> Finding {
        let problem = candidates::unusable(address, self.family()).unwrap_or_default();
        self.finding(FindingKind::BadEndpoint { address, problem })
    }

    fn resolve(&self, sources: &mut Sources<'a>, resolution: &mut Resolution) {
        let candidates = candidates::collect(self);
        let refused = candidates.refused.iter();
        let findings = refused.map(|candidate| self.bad_endpoint(candidate.endpoint.address));
        resolution.findings.extend(findings);
        let mut choice = sources.choose(self);
        let drains = Drains::find(self, choice.policy(), &candidates.accepted);
        choice
            .notes
            .extend(drains.without_effect(self, &choice, &candidates.accepted));
        let mut work = ramp::decide(self, candidates, choice, &drains);
        for stage in STAGES.iter().filter(|stage| stage.number >= TOGETHER) {
            stage.run(&mut work);
        }
        let moments = [
            resolution.resolve_again_at,
            drains.resolve_again_at,
            work.resolve_again_at,
        ];
        resolution.resolve_again_at = moments.into_iter().flatten().min();
        resolution.servers.push(work.conclude());
    }
}
