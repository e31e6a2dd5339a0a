//! From wishes and this machine's addresses to routes and tables.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cluster::claims;
use cluster::object::{Kind, ObjectKey};
use cluster::warning::Warning;
use topology_core::model::{Cidr, Family, Protocol};
use topology_core::virtual_server::VirtualServerKey;

use super::{Item, Reconciler};
use crate::guard::{Guard, GuardError, GuardSet, PodMoves};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::routes::addresses::{Candidates, Interface, NodeIps};
use crate::routes::{self, LocalRoute, RouteReport};
use crate::trouble::Topic;

/// The addresses of this machine, as last read.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    interfaces: Vec<Interface>,
    default_sources: Vec<IpAddr>,
}

/// What routes and tables shall be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) ranges: BTreeSet<Cidr>,
    pub(super) routes: BTreeSet<LocalRoute>,
    pub(super) guard: Guard,
}

/// What has to be done around virtual servers.
pub(super) enum Around {
    /// Everything is looked at.
    Shape(Shape),
    /// Pods of this node are taken into the tables or out of them.
    Pods(PodMoves),
}

impl Place {
    /// Whether the address is this machine's own, on any link but `kube-ipvs0`.
    pub(super) fn link_of(&self, address: IpAddr) -> Option<&str> {
        let mine = self
            .interfaces
            .iter()
            .find(|interface| interface.address == address);
        mine.map(|interface| interface.link.as_str())
    }

    fn addresses(&self) -> BTreeSet<IpAddr> {
        self.interfaces
            .iter()
            .map(|interface| interface.address)
            .collect()
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Reads the machine's addresses again. Returns those that came or went; after an error those of before stay.
    pub(super) async fn read_place(&mut self) -> BTreeSet<IpAddr> {
        self.try_read_place().await.unwrap_or_default()
    }

    /// The same, with the error, of which the node warns already.
    pub(super) async fn try_read_place(&mut self) -> Result<BTreeSet<IpAddr>, String> {
        let (interfaces, default_sources) = match self.host.addresses().await {
            Ok(read) => read,
            Err(error) => {
                let text = error.to_string();
                self.warnings.set(Topic::Routes, vec![text.clone()]);
                return Err(text);
            }
        };
        let before = self.place.addresses();
        self.place = Place {
            interfaces,
            default_sources,
        };
        let now = self.place.addresses();
        Ok(before.symmetric_difference(&now).copied().collect())
    }

    /// What routes and tables shall be now, as everything is wished for.
    pub(super) fn shape(&mut self) -> Shape {
        let snapshot = self.index.snapshot();
        let own = snapshot.node(&self.me.node);
        let own: &[IpAddr] = own.map_or(&[], |node| &node.addresses);
        let (ranges, refused) =
            routes::usable_ranges(snapshot.service_cidrs(), own, &self.place.interfaces);
        let node_ips = self.node_ips();
        let mut lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
        let vips: BTreeSet<IpAddr> = self.books.vips().collect();
        lines.extend(missing_sources(&node_ips, &vips));
        self.warnings.set(Topic::Addresses, lines);
        let inside = |ip: &IpAddr| ranges.iter().any(|range| range.contains(*ip));
        let own = self.place.addresses();
        let guard = Guard {
            vips: vips.iter().copied().filter(|vip| !inside(vip)).collect(),
            hairpin: self.books.local().filter(|ip| !own.contains(ip)).collect(),
            own: own.into_iter().filter(inside).collect(),
            silent: self.books.silent().filter_map(place_of).collect(),
            cidrs: ranges.clone(),
        };
        let routes = routes::wanted(&ranges, vips.into_iter(), &node_ips);
        Shape {
            ranges,
            routes,
            guard,
        }
    }

    /// Tells of Nodes that claim addresses of Services. At the start and with each periodic check only: a Node that
    /// changes its addresses all the time costs one line a check.
    pub(super) fn note_claims(&mut self) {
        let (snapshot, me) = (self.index.snapshot(), &self.me.node);
        let own = claims::warning_of(snapshot, me);
        let mut others = claims::warnings(snapshot, |_key| None);
        let mine = ObjectKey::global(Kind::Node, me);
        others.retain(|warning| warning.subject.key() != Some(&mine));
        let lines = |warnings: &[Warning]| warnings.iter().map(ToString::to_string).collect();
        self.warnings.set(Topic::OwnClaim, lines(own.as_slice()));
        self.warnings.set(Topic::NodeClaim, lines(&others));
    }

    fn node_ips(&self) -> NodeIps {
        let node = self.index.snapshot().node(&self.me.node);
        let candidates = Candidates {
            flags: &self.config.node_ips,
            node: node.map_or(&[], |node| &node.addresses),
            default_route: &self.place.default_sources,
        };
        candidates.choose(&self.place.interfaces)
    }

    /// What has to be done around virtual servers now; everything if `all`.
    pub(super) fn around(&mut self, all: bool) -> Around {
        let frontends = self.books.take_frontends_changed();
        let mut moves = self.books.take_moves();
        let pods_only = moves.is_empty() || self.host.knows_guard();
        if all || frontends || !pods_only {
            return Around::Shape(self.shape());
        }
        moves.retain(|pod| self.place.link_of(*pod).is_none());
        Around::Pods(moves)
    }

    /// The part of the tables that has to be there before virtual servers are. Returns the writes made.
    pub(super) async fn before_servers(&mut self, around: &Around) -> usize {
        match around {
            Around::Shape(shape) if self.host.guard_lacks(&shape.guard) => {
                self.set_guard(shape).await
            }
            Around::Shape(_) => 0,
            Around::Pods(moves) => {
                let came = moves.came.clone();
                self.move_pods(PodMoves {
                    came,
                    ..PodMoves::default()
                })
                .await
            }
        }
    }

    /// Routes, and the part of the tables that can wait. Returns the writes made.
    pub(super) async fn after_servers(&mut self, around: Around) -> usize {
        match around {
            Around::Shape(shape) => {
                let routes = self.set_routes(&shape).await;
                // What is still not there was refused a moment ago.
                if self.host.guard_lacks(&shape.guard) {
                    return routes;
                }
                routes + self.set_guard(&shape).await
            }
            Around::Pods(PodMoves { left, .. }) => {
                self.move_pods(PodMoves {
                    left,
                    ..PodMoves::default()
                })
                .await
            }
        }
    }

    /// If the kernel does not take it, the tables are not as we made them: they are made anew.
    async fn move_pods(&mut self, moves: PodMoves) -> usize {
        if moves.is_empty() {
            return 0;
        }
        match self.host.move_pods(&moves).await {
            Ok(written) => usize::from(written),
            Err(error) => {
                tracing::debug!("{error}");
                let shape = self.shape();
                self.set_guard(&shape).await
            }
        }
    }

    async fn set_guard(&mut self, shape: &Shape) -> usize {
        match self.host.set_guard(&shape.guard).await {
            Ok(GuardSet::Pending) => {
                // A retry that is due has become what runs now; its end decides.
                if let Some(failure) = self.agenda.succeeded(&Item::Guard) {
                    self.warnings.set(Topic::Guard, vec![failure.error]);
                }
                self.await_guard();
                0
            }
            Ok(set) => {
                self.agenda.succeeded(&Item::Guard);
                self.warnings.set(Topic::Guard, Vec::new());
                usize::from(set == GuardSet::Written)
            }
            Err(error) => {
                self.guard_failed(&error);
                0
            }
        }
    }

    /// Warns, and tries again later.
    pub(super) fn guard_failed(&mut self, error: &GuardError) {
        let (text, now) = (error.to_string(), self.now());
        self.warnings.set(Topic::Guard, vec![text.clone()]);
        self.agenda.failed(&Item::Guard, text, now);
    }

    async fn set_routes(&mut self, shape: &Shape) -> usize {
        match self.host.set_routes(&shape.routes).await {
            Ok(report) => self.routes_set(&report),
            Err(error) => self.routes_failed(vec![error.to_string()]),
        }
    }

    fn routes_set(&mut self, report: &RouteReport) -> usize {
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
        if failed.is_empty() {
            self.agenda.succeeded(&Item::Routes);
            self.warnings.set(Topic::Routes, Vec::new());
        } else {
            let words = |(route, error): &(LocalRoute, String)| {
                format!("route {route} cannot be set: {error}; see that link lo is up")
            };
            self.routes_failed(failed.iter().map(words).collect());
        }
        added.len() + removed.len()
    }

    fn routes_failed(&mut self, lines: Vec<String>) -> usize {
        let now = self.now();
        self.agenda.failed(&Item::Routes, lines.join("; "), now);
        self.warnings.set(Topic::Routes, lines);
        0
    }
}

fn place_of(key: &VirtualServerKey) -> Option<(IpAddr, Protocol, u16)> {
    match *key {
        VirtualServerKey::Address {
            protocol,
            address,
            port,
        } => Some((address, protocol, port)),
        VirtualServerKey::FirewallMark { .. } => None,
    }
}

/// A family that has Services but no address of the node.
fn missing_sources(node: &NodeIps, vips: &BTreeSet<IpAddr>) -> Vec<String> {
    let families = [(Family::V4, node.v4), (Family::V6, node.v6)];
    let missing = families
        .into_iter()
        .filter(|(family, ip)| ip.is_none() && vips.iter().any(|vip| Family::of(*vip) == *family));
    let words = |(family, _)| {
        format!(
            "this machine has no {family} address of its own, so its own processes cannot use {family} Services; \
             give it one, or name it with --node-ip"
        )
    };
    missing.map(words).collect()
}
