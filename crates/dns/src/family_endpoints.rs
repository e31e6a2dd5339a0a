//! The endpoints of both families, and those that SRV answers name.
//!
//! An A or AAAA answer is decided for one family. An SRV answer has names, and a name leads to the addresses of both. So one
//! family leads: its turns select the level of an SRV answer, and the other family only adds endpoints of this level.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use rustc_hash::{FxHashMap, FxHashSet};
use topology_core::model::{EndpointSlice, Family, Service};
use topology_core::resolve::ResolvedServer;

use crate::port_name::{PortName, asked_ports};
use crate::published::is_published;
use crate::weighted_endpoints::{ChosenEndpoint, WeightedEndpoints};

/// The endpoints of a headless Service that have names: of a port, or without one of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishedEndpoints<'s> {
    pub(crate) service: &'s Service,
    pub(crate) slices: &'s [EndpointSlice],
    pub(crate) port: Option<&'s PortName>,
}

impl<'s> PublishedEndpoints<'s> {
    /// The addresses of a family with their hostnames.
    fn of_family(self, family: Family) -> impl Iterator<Item = (IpAddr, Option<&'s str>)> {
        let slices = self.slices.iter();
        let slices = slices.filter(move |slice| slice.family == family && self.has_port(slice));
        let endpoints = slices.flat_map(EndpointSlice::endpoints_with_hostnames);
        endpoints
            .filter(move |(endpoint, _)| is_published(self.service, endpoint))
            .map(|(endpoint, hostname)| (endpoint.address, hostname.map(|own| &**own)))
    }

    fn has_port(self, slice: &EndpointSlice) -> bool {
        self.port.is_none() || !asked_ports(slice, self.port).is_empty()
    }
}

/// The endpoints of each family, the leading one first.
#[derive(Debug, Clone, Default)]
pub(crate) struct FamilyEndpoints {
    families: Vec<(Family, WeightedEndpoints)>,
    /// Addresses of the other family that are in no SRV answer.
    unnamed: FxHashSet<IpAddr>,
}

impl FamilyEndpoints {
    /// The family with the nearest endpoints leads, IPv4 if both are as near. A family with nothing but endpoints of a last
    /// resort, such as drained ones, is behind one with others.
    pub(crate) fn of(servers: &[&ResolvedServer], published: PublishedEndpoints<'_>) -> Self {
        let families = servers.iter().map(|resolved| {
            let family = resolved.server.key.family();
            (family, WeightedEndpoints::of(&resolved.decision))
        });
        let mut families: Vec<_> = families.collect();
        families.sort_by_key(|(_, endpoints)| endpoints.distance());
        let unnamed = match &families[..] {
            [leading, other] => unnamed(leading, other, published),
            _ => FxHashSet::default(),
        };
        Self { families, unnamed }
    }

    /// The endpoints of a family.
    pub(crate) fn of_family(&self, family: Family) -> Option<&WeightedEndpoints> {
        let mut families = self.families.iter();
        let (_, endpoints) = families.find(|(known, _)| *known == family)?;
        Some(endpoints)
    }

    pub(crate) fn leading(&self) -> Option<&WeightedEndpoints> {
        self.families.first().map(|(_, endpoints)| endpoints)
    }

    /// The endpoints that the SRV answer of a turn names: those of one level.
    pub(crate) fn named(&self, turn: u64) -> impl Iterator<Item = &ChosenEndpoint> {
        let leading = self.leading();
        let level = leading.and_then(|leading| leading.level_of_turn(turn));
        let families = self.families.iter();
        let endpoints = families.flat_map(move |(_, family)| family.of_level(level, turn));
        endpoints.filter(|endpoint| self.is_named(endpoint))
    }

    /// Whether SRV answers for the level of the endpoint name it.
    pub(crate) fn is_named(&self, endpoint: &ChosenEndpoint) -> bool {
        !self.unnamed.contains(&endpoint.address)
    }

    /// What the endpoints cost in memory, in endpoints.
    pub(crate) fn count(&self) -> usize {
        let families = self.families.iter();
        let endpoints: usize = families.map(|(_, family)| family.all().len()).sum();
        endpoints + self.unnamed.len()
    }
}

/// The addresses of the other family that are in no SRV answer, none if nothing but the rules of kube-proxy decides (`CoreDNS`
/// names the endpoints of each family, too). Otherwise endpoints of a last resort beside better ones, and those of
/// a host that the leading family has in another level or does not use, because its name leads to both addresses.
fn unnamed(
    (leading_family, leading): &(Family, WeightedEndpoints),
    (other_family, other): &(Family, WeightedEndpoints),
    published: PublishedEndpoints<'_>,
) -> FxHashSet<IpAddr> {
    if leading.is_by_kube_proxy() && other.is_by_kube_proxy() {
        return FxHashSet::default();
    }
    let levels = levels_by_address(other);
    let mut unnamed: FxHashSet<IpAddr> = levels.keys().copied().collect();
    if leading.is_last_resort() != other.is_last_resort() {
        return unnamed;
    }
    let leading_levels = levels_by_address(leading);
    // A tenant may give all endpoints one hostname, or many that collide.
    let mut hosts = BTreeMap::<&str, BTreeSet<Option<usize>>>::new();
    for (address, hostname) in published.of_family(*leading_family) {
        if let Some(hostname) = hostname {
            let level = leading_levels.get(&address);
            hosts.entry(hostname).or_default().extend(level);
        }
    }
    for (address, hostname) in published.of_family(*other_family) {
        let Some(level) = levels.get(&address) else {
            continue;
        };
        let in_leading = hostname.and_then(|hostname| hosts.get(hostname));
        if in_leading.is_none_or(|in_leading| in_leading.contains(level)) {
            unnamed.remove(&address);
        }
    }
    unnamed
}

fn levels_by_address(endpoints: &WeightedEndpoints) -> FxHashMap<IpAddr, Option<usize>> {
    let endpoints = endpoints.all().iter();
    endpoints
        .map(|endpoint| (endpoint.address, endpoint.level))
        .collect()
}
