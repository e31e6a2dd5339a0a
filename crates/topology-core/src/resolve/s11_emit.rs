//! S11: the virtual server, with its real servers in the order in which they enter the kernel.
//!
//! The order is by a hash of this node's name and the endpoint: a fresh `wrr` starts at the head of its list, and
//! nodes that all began with the same real server would hit it together (kubernetes/kubernetes #121591).

use std::hash::Hasher;
use std::net::IpAddr;

use rustc_hash::FxHasher;

use super::candidates::Candidate;
use super::decision::{Decision, EndpointDecision, LevelDecision};
use super::work::Work;
use super::{FrontendKind, ResolvedServer};
use crate::policy::ZONE;
use crate::virtual_server::{RealServer, VirtualServer, VirtualServerKey};

/// The virtual server and its decision.
pub(super) fn emit(work: Work<'_>) -> ResolvedServer {
    let view = work.view;
    let key = VirtualServerKey::Address {
        protocol: view.port.protocol,
        address: view.address,
        port: view.port.port.get(),
    };
    let server = VirtualServer {
        key,
        scheduler: view.me.scheduler.clone(),
        persistence: view.service.session_affinity,
        real_servers: real_servers(&work),
    };
    ResolvedServer {
        service: view.service.name.clone(),
        port_name: view.port.name.clone(),
        kind: FrontendKind::ClusterIp,
        server,
        decision: decision(work),
    }
}

fn real_servers(work: &Work<'_>) -> Vec<RealServer> {
    let chosen = work
        .candidates
        .iter()
        .filter(|candidate| candidate.reason.is_chosen());
    let mut real_servers: Vec<RealServer> = chosen
        .map(|candidate| RealServer {
            address: candidate.endpoint.address,
            port: candidate.port,
            weight: candidate.weight,
        })
        .collect();
    real_servers
        .sort_by_cached_key(|real| (position(&work.me().node, real), real.address, real.port));
    real_servers
}

fn position(node: &str, real: &RealServer) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(node.as_bytes());
    match real.address {
        IpAddr::V4(address) => hasher.write_u32(address.to_bits()),
        IpAddr::V6(address) => hasher.write_u128(address.to_bits()),
    }
    hasher.write_u16(real.port);
    hasher.finish()
}

fn decision(work: Work<'_>) -> Decision {
    let endpoints = work
        .candidates
        .iter()
        .map(|candidate| endpoint(&work, candidate))
        .collect();
    let levels = work.tiers.into_iter().map(|tier| LevelDecision {
        key: tier.key,
        configured: tier.configured,
        wanted: tier.wanted,
        share: tier.share,
        achieved: tier.achieved,
        usable: tier.usable,
        total: tier.total,
    });
    Decision {
        source: work.source,
        mode: work.mode,
        levels: levels.collect(),
        endpoints,
        notes: work.notes,
        quantised: work.quantised,
        refusal: work.refusal,
    }
}

fn endpoint(work: &Work<'_>, candidate: &Candidate<'_>) -> EndpointDecision {
    EndpointDecision {
        address: candidate.endpoint.address,
        port: candidate.port,
        node: candidate.endpoint.node.clone(),
        zone: work.label_of(candidate, ZONE).cloned(),
        level: candidate
            .tier
            .and_then(|tier| work.tiers.get(tier))
            .map(|tier| tier.key.clone()),
        weight: candidate.weight,
        share: candidate.share,
        reason: candidate.reason,
    }
}
