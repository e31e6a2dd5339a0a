//! Keeps the decisions about headless Services, for the Nodes of the clients that asked.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use topology_core::memory::Memory;
use topology_core::model::{Family, ObjectName};
use topology_core::resolve::{Resolution, Viewpoint, resolve_headless};
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

use crate::port_name::PortName;
use crate::weighted_endpoints::WeightedEndpoints;

/// Decisions are kept for this many Nodes. The server of a node has few clients of other nodes.
const MOST_NODES: usize = 64;

/// The decision about a headless Service, seen from one Node.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeadlessDecision {
    scopes: Vec<(AnswerScope, WeightedEndpoints)>,
    /// When to decide again, in milliseconds since 1970.
    until: Option<i64>,
}

/// What endpoints are for: a family, and a port or the name of the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AnswerScope {
    family: Family,
    /// `None` for the name of the Service.
    port: Option<PortName>,
}

impl HeadlessDecision {
    fn of(resolution: &Resolution) -> Self {
        let scopes = resolution.servers.iter().map(|resolved| {
            let key = resolved.server.key;
            let port = match key {
                VirtualServerKey::Address { protocol, port, .. } if port > 0 => Some(PortName {
                    name: Arc::clone(&resolved.port_name),
                    protocol,
                }),
                VirtualServerKey::Address { .. } | VirtualServerKey::FirewallMark { .. } => None,
            };
            let family = key.family();
            (
                AnswerScope { family, port },
                WeightedEndpoints::of(&resolved.decision),
            )
        });
        Self {
            scopes: scopes.collect(),
            until: resolution.resolve_again_at,
        }
    }

    /// The endpoints for the name of the Service.
    pub(crate) fn of_name(&self, family: Family) -> Option<&WeightedEndpoints> {
        let mut scopes = self.scopes.iter();
        let asked = AnswerScope { family, port: None };
        let (_, endpoints) = scopes.find(|(known, _)| *known == asked)?;
        Some(endpoints)
    }

    /// The endpoints for a port, or for all ports, of both families.
    pub(crate) fn of_ports(
        &self,
        asked: Option<&PortName>,
    ) -> impl Iterator<Item = &WeightedEndpoints> {
        let scopes = self.scopes.iter();
        let of_ports = scopes.filter(move |(scope, _)| {
            let port = scope.port.as_ref();
            port.is_some_and(|port| asked.is_none_or(|asked| asked == port))
        });
        of_ports.map(|(_, endpoints)| endpoints)
    }

    fn is_current(&self, now: i64) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Where the clients of a Node get their answers from at the time `now`, in milliseconds since 1970. The server also
/// remembers its earlier decisions.
pub fn viewpoint(node: &Arc<str>, now: i64) -> Viewpoint {
    Viewpoint {
        now: Some(now),
        ..Viewpoint::new(Arc::clone(node))
    }
}

/// The decisions for the clients of one Node, and what the next ones need to know of them.
#[derive(Debug, Default)]
struct NodeDecisions {
    decisions: FxHashMap<ObjectName, Arc<HeadlessDecision>>,
    memory: Arc<Memory>,
}

/// The decisions of each Node.
#[derive(Debug, Default)]
pub(crate) struct Decisions(FxHashMap<Arc<str>, NodeDecisions>);

impl Decisions {
    /// The decision about a Service at the time `now` for the clients of a Node.
    pub(crate) fn get(
        &mut self,
        snapshot: &Snapshot,
        service: &ObjectName,
        node: &Arc<str>,
        now: i64,
    ) -> Arc<HeadlessDecision> {
        if self.0.len() >= MOST_NODES && !self.0.contains_key(node) {
            self.0.clear();
        }
        let of_node = self.0.entry(Arc::clone(node)).or_default();
        let known = of_node.decisions.get(service);
        if let Some(known) = known.filter(|known| known.is_current(now)) {
            return Arc::clone(known);
        }
        let me = Viewpoint {
            memory: Arc::clone(&of_node.memory),
            ..viewpoint(node, now)
        };
        let resolution = resolve_headless(snapshot, &me, service);
        drop(me);
        Arc::make_mut(&mut of_node.memory).store(service, &resolution);
        let decision = Arc::new(HeadlessDecision::of(&resolution));
        let kept = Arc::clone(&decision);
        of_node.decisions.insert(service.clone(), kept);
        decision
    }

    /// Decides about a Service again when a client asks.
    pub(crate) fn forget(&mut self, snapshot: &Snapshot, service: &ObjectName) {
        let is_gone = snapshot.service(service).is_none();
        for of_node in self.0.values_mut() {
            of_node.decisions.remove(service);
            if is_gone {
                Arc::make_mut(&mut of_node.memory).store(service, &Resolution::default());
            }
        }
    }

    /// Decides about every Service again when a client asks.
    pub(crate) fn forget_all(&mut self) {
        for of_node in self.0.values_mut() {
            of_node.decisions.clear();
        }
    }
}
