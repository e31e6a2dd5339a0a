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
mod finding;
mod hash;
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

use rustc_hash::FxHashSet;

pub use decision::{Decision, EndpointDecision, LevelDecision, Lost, LostBecause, Note, Refusal};
pub use finding::{Finding, FindingKind};
pub use reason::Reason;
pub use record::{Fact, StageRecord};
pub use resolution::{Resolution, ResolvedServer};
pub use stages::{STAGES, Stage};
pub use viewpoint::Viewpoint;

use crate::model::{Family, ObjectName, Service};
use crate::snapshot::{FrontendKey, Snapshot};
use crate::virtual_server::VirtualServerKey;
use candidates::Candidate;
use drains::Drains;
use port_view::PortView;
use stages::TOGETHER;
use targets::Targets;

/// Resolves the Service `name` as seen from `me`; an empty result if it does not exist.
pub fn resolve(snapshot: &Snapshot, me: &Viewpoint, name: &ObjectName) -> Resolution {
    let mut resolution = Resolution::default();
    let Some(service) = snapshot.service(name) else {
        return resolution;
    };
    let targets = Targets::of(service, snapshot.slices(name));
    let mut keys = FxHashSet::default();
    for port in &service.ports {
        for frontend in &service.frontends {
            let view = PortView {
                snapshot,
                me,
                service,
                targets: targets.of_port(port, Family::of(frontend.address)),
                port,
                frontend: *frontend,
                own_node: snapshot.node(&me.node),
            };
            if let Some(kind) = view.obstacle(&keys) {
                resolution.findings.push(view.finding(kind));
            } else {
                view.resolve(&mut resolution);
                keys.insert(view.key());
            }
        }
    }
    resolution
}

impl PortView<'_> {
    /// Why the address must not be programmed for this Service, given its previous virtual servers.
    fn obstacle(&self, so_far: &FxHashSet<VirtualServerKey>) -> Option<FindingKind> {
        let address = self.frontend.address;
        if let Some(problem) = candidates::special(address) {
            return Some(FindingKind::BadClusterIp { address, problem });
        }
        if let Some(node) = self.snapshot.conflicting_node(address, &self.me.node) {
            let node = node.name.clone();
            return Some(FindingKind::NodeAddress { address, node });
        }
        let frontend = FrontendKey {
            address,
            protocol: self.port.protocol,
            port: self.frontend.port_of(self.port),
        };
        let owner = self.snapshot.owner_of(&frontend)?;
        if *owner != self.service.name {
            let created = |service: &Service| service.created.unwrap_or(i64::MAX);
            let is_older = self
                .snapshot
                .service(owner)
                .is_some_and(|owner| created(owner) < created(self.service));
            let owner = owner.clone();
            return Some(FindingKind::FrontendTaken {
                frontend,
                owner,
                is_older,
            });
        }
        let repeated = so_far.contains(&self.key());
        repeated.then_some(FindingKind::PortRepeated { frontend })
    }

    fn finding(&self, kind: FindingKind) -> Finding {
        Finding {
            service: self.service.name.clone(),
            port_name: self.port.name.clone(),
            kind,
        }
    }

    fn resolve(&self, resolution: &mut Resolution) {
        let candidates = candidates::collect(self);
        for Candidate { endpoint, .. } in &candidates.refused {
            let address = endpoint.address;
            let problem = candidates::unusable(address, self.family()).unwrap_or_default();
            let kind = FindingKind::BadEndpoint { address, problem };
            resolution.findings.push(self.finding(kind));
        }
        let mut choice = source::choose(self);
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
