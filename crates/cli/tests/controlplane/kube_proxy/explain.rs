//! Compares two tables, and finds the reviewed difference that explains each mismatch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use topology_core::resolve::ResolvedServer;
use topology_core::snapshot::FrontendKey;
use topology_core::virtual_server::VirtualServerKey;

use super::differences::Difference;
use super::facts::{Claim, Facts, Kind, Lists};
use super::table::{Entry, Table};

/// What differs between two virtual servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aspect {
    /// Only kube-proxy has it.
    Missing,
    /// Only we have it.
    Extra,
    Scheduler,
    Options,
    RealServers,
}

/// A virtual server that differs.
struct Mismatch<'a> {
    aspect: Aspect,
    key: &'a str,
    theirs: &'a Entry,
    ours: &'a Entry,
    /// Our decision about it.
    resolved: Option<&'a ResolvedServer>,
    facts: &'a Facts,
}

/// The result of a comparison.
#[derive(Default)]
pub(crate) struct Comparison {
    /// How often each difference was seen.
    pub(crate) seen: BTreeMap<Difference, usize>,
    /// A text for each mismatch that nothing explains.
    pub(crate) unexplained: Vec<String>,
}

impl Comparison {
    /// Compares kube-proxy's table with ours. `resolved` has our decision for each key.
    pub(crate) fn add(
        &mut self,
        theirs: &Table,
        ours: &Table,
        resolved: &BTreeMap<String, &ResolvedServer>,
        facts: &Facts,
    ) {
        let absent = Entry::default();
        let keys: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        for key in keys {
            let (their, our) = (theirs.get(key), ours.get(key));
            for aspect in aspects(their, our) {
                let mismatch = Mismatch {
                    aspect,
                    key,
                    theirs: their.unwrap_or(&absent),
                    ours: our.unwrap_or(&absent),
                    resolved: resolved.get(key).copied(),
                    facts,
                };
                let mut all = Difference::ALL.into_iter();
                match all.find(|one| mismatch.is_explained_by(*one)) {
                    Some(difference) => *self.seen.entry(difference).or_default() += 1,
                    None => self.unexplained.push(mismatch.text()),
                }
            }
        }
    }
}

fn aspects(theirs: Option<&Entry>, ours: Option<&Entry>) -> Vec<Aspect> {
    let (theirs, ours) = match (theirs, ours) {
        (Some(theirs), Some(ours)) => (theirs, ours),
        (Some(_), None) => return vec![Aspect::Missing],
        (None, _) => return vec![Aspect::Extra],
    };
    let differing = [
        (Aspect::Scheduler, theirs.scheduler != ours.scheduler),
        (Aspect::Options, theirs.options != ours.options),
        (Aspect::RealServers, theirs.reals != ours.reals),
    ];
    let differing = differing.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(aspect, _)| aspect).collect()
}

impl Mismatch<'_> {
    fn is_explained_by(&self, difference: Difference) -> bool {
        match difference {
            Difference::Scheduler => self.is_wrr_for_rr(),
            Difference::OutsideClients => self.is_mark_of_local_endpoints(),
            Difference::InsideClients => self.is_all_endpoints_for_inside_clients(),
            Difference::InternalLocal => self.is_internal_local_without_endpoints(),
            Difference::ExternalIp => {
                self.aspect == Aspect::Missing && self.only_kind(Kind::ExternalIp)
            }
            Difference::AddressOfNode => {
                self.aspect == Aspect::Missing
                    && self.only_kind(Kind::LoadBalancer)
                    && self.facts.is_of_other_node(self.key)
            }
            Difference::Contested => self.is_of_one_claimant(),
        }
    }

    fn is_wrr_for_rr(&self) -> bool {
        let weights = self.ours.reals.values();
        self.aspect == Aspect::Scheduler
            && [&*self.theirs.scheduler, &*self.ours.scheduler] == ["rr", "wrr"]
            && weights.into_iter().all(|options| options.ends_with("-w 1"))
    }

    /// The mark of a Service port, with the endpoints of this node.
    fn is_mark_of_local_endpoints(&self) -> bool {
        let Some(resolved) = self.resolved.filter(|_| self.aspect == Aspect::Extra) else {
            return false;
        };
        let name = &resolved.service;
        let keys = resolved.marked.iter();
        let key = |frontend: &FrontendKey| {
            let key = VirtualServerKey::Address {
                protocol: frontend.protocol,
                address: frontend.address,
                port: frontend.port,
            };
            key.to_string()
        };
        let Some(service) = self.facts.service(&name.namespace, &name.name) else {
            return false;
        };
        let mut count = 0;
        let all_are_its = keys.map(key).all(|key| {
            count += 1;
            let claims = self.facts.claims(&key);
            let mut own = claims.into_iter().filter(|claim| claim.service == service);
            own.any(|claim| {
                claim.is_local("externalTrafficPolicy")
                    && claim.kind != Kind::ClusterIp
                    && self.ours.addresses() == self.facts.lists(claim, self.is_v6()).local
            })
        });
        self.key.starts_with("-f ") && count > 0 && all_are_its
    }

    fn is_all_endpoints_for_inside_clients(&self) -> bool {
        let Some((claim, lists)) = self.only_claim() else {
            return false;
        };
        self.aspect == Aspect::RealServers
            && claim.kind != Kind::ClusterIp
            && claim.is_local("externalTrafficPolicy")
            && self.theirs.addresses() == lists.local
            && self.ours.addresses() == lists.cluster
    }

    fn is_internal_local_without_endpoints(&self) -> bool {
        let Some((claim, lists)) = self.only_claim() else {
            return false;
        };
        self.aspect == Aspect::RealServers
            && claim.kind == Kind::ClusterIp
            && claim.is_local("internalTrafficPolicy")
            && claim.is_external()
            && lists.local.is_empty()
            && self.ours.reals.is_empty()
            && self.theirs.addresses() == lists.cluster
    }

    /// kube-proxy has what one of the Services asks for, and we have what another one asks for.
    fn is_of_one_claimant(&self) -> bool {
        let claims = self.facts.claims(self.key);
        let asked_for = |entry: &Entry| {
            claims.iter().any(|claim| {
                let lists = self.facts.lists(*claim, self.is_v6());
                [lists.local, lists.cluster].contains(&entry.addresses())
            })
        };
        claims.len() > 1
            && matches!(self.aspect, Aspect::RealServers | Aspect::Options)
            && asked_for(self.theirs)
            && asked_for(self.ours)
    }

    fn is_v6(&self) -> bool {
        self.key.contains('[') || self.key.ends_with(" -6")
    }

    fn only_kind(&self, kind: Kind) -> bool {
        let claims = self.facts.claims(self.key);
        !claims.is_empty() && claims.iter().all(|claim| claim.kind == kind)
    }

    /// The claim and its endpoints, if there is exactly one.
    fn only_claim(&self) -> Option<(Claim<'_>, Lists)> {
        match self.facts.claims(self.key)[..] {
            [claim] => Some((claim, self.facts.lists(claim, self.is_v6()))),
            _ => None,
        }
    }

    /// Both sides, our decision and the Services.
    fn text(&self) -> String {
        let mut text = format!(
            "{:?} of {}\n  kube-proxy: {:?}\n  ipvs-topo:  {:?}\n",
            self.aspect, self.key, self.theirs, self.ours
        );
        if let Some(resolved) = self.resolved {
            let (kind, clients) = (resolved.kind.as_str(), resolved.clients.as_str());
            writeln!(
                text,
                "  our decision: Service {}, {kind}, {clients} clients",
                resolved.service
            )
            .unwrap();
        }
        for claim in self.facts.claims(self.key) {
            let lists = self.facts.lists(claim, self.is_v6());
            let service = serde_json::to_string_pretty(claim.service).unwrap();
            writeln!(text, "  by the API: {lists:?}\n{service}").unwrap();
        }
        text
    }
}
