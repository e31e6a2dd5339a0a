//! The levels of the answers to a client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use topology_core::policy::LevelKey;
use topology_core::resolve::{Decision, ResolvedServer};
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::VirtualServerKey;

use crate::family_endpoints::{FamilyEndpoints, PublishedEndpoints};
use crate::port_name::PortName;
use crate::weighted_endpoints::{ChosenEndpoint, WeightedEndpoints};

/// The answers to a client until they repeat: each is for one level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerCycle {
    /// The levels with endpoints, nearest first.
    pub levels: Vec<AnswerLevel>,
    /// The number of answers in the cycle.
    pub answers: u64,
}

/// A level in the answers to a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerLevel {
    /// `None` for endpoints that the decision puts in no level.
    pub key: Option<LevelKey>,
    /// How many answers of a cycle are for it.
    pub answers: u64,
    /// Address and port of the endpoints in each of these answers, sorted.
    pub endpoints: Vec<(IpAddr, u16)>,
}

impl AnswerCycle {
    /// The answers of one family, A or AAAA.
    pub fn of(decision: &Decision) -> Self {
        let endpoints = WeightedEndpoints::of(decision);
        let levels = levels(decision, &endpoints.all().iter().collect::<Vec<_>>());
        Self {
            answers: levels.values().map(|level| level.answers).sum(),
            levels: levels.into_values().collect(),
        }
    }

    /// The answers that a server of a headless Service stands for: A or AAAA for the name, SRV for a port. `all` are the
    /// servers of the Service. An SRV answer has endpoints of both families, and the levels are those to which this one
    /// adds some.
    pub fn of_server(snapshot: &Snapshot, server: &ResolvedServer, all: &[ResolvedServer]) -> Self {
        let Some(families) = families_of_port(snapshot, server, all) else {
            return Self::of(&server.decision);
        };
        let mut answers = BTreeMap::<usize, u64>::new();
        let leading = families.leading().into_iter();
        for endpoint in leading.flat_map(WeightedEndpoints::all) {
            *answers.entry(position(endpoint)).or_default() += u64::from(endpoint.weight);
        }
        let own = families.of_family(server.server.key.family()).into_iter();
        let own = own.flat_map(WeightedEndpoints::all);
        let named: Vec<_> = own.filter(|endpoint| families.is_named(endpoint)).collect();
        let levels = levels(&server.decision, &named).into_iter();
        let levels = levels.filter_map(|(at, level)| {
            let answers = *answers.get(&at)?;
            Some(AnswerLevel { answers, ..level })
        });
        Self {
            levels: levels.collect(),
            answers: answers.values().sum(),
        }
    }
}

/// The endpoints of the port of a server; `None` if it stands for the name.
fn families_of_port(
    snapshot: &Snapshot,
    server: &ResolvedServer,
    all: &[ResolvedServer],
) -> Option<FamilyEndpoints> {
    let port = port_name(server)?;
    let published = PublishedEndpoints {
        service: snapshot.service(&server.service)?,
        slices: snapshot.slices(&server.service),
        port: Some(&port),
    };
    let of_port = all
        .iter()
        .filter(|other| port_name(other).as_ref() == Some(&port));
    let of_port: Vec<_> = of_port.collect();
    Some(FamilyEndpoints::of(&of_port, published))
}

fn port_name(server: &ResolvedServer) -> Option<PortName> {
    let VirtualServerKey::Address { protocol, .. } = server.server.key else {
        return None;
    };
    let name = Arc::clone(server.port_of_slices()?);
    Some(PortName { name, protocol })
}

fn position(endpoint: &ChosenEndpoint) -> usize {
    endpoint.level.unwrap_or(usize::MAX)
}

/// The levels of the endpoints by their position in the decision.
fn levels(decision: &Decision, endpoints: &[&ChosenEndpoint]) -> BTreeMap<usize, AnswerLevel> {
    let mut levels = BTreeMap::<usize, AnswerLevel>::new();
    for endpoint in endpoints {
        let at = position(endpoint);
        let level = levels.entry(at).or_default();
        level.key = decision.levels.get(at).map(|level| level.key.clone());
        level.answers += u64::from(endpoint.weight);
        level.endpoints.push((endpoint.address, endpoint.port));
    }
    levels
}
