//! S11: lists the real servers in the order in which they enter the kernel, or the reason why there are none.
//!
//! The order is by a hash of this node's name and the endpoint. A new `wrr` starts at the head of its list, so nodes
//! with the same order would all use the same real server first (kubernetes/kubernetes #121591). The hash is our own,
//! so that the order is the same on every machine and in every version. Endpoints of drained domains are listed with
//! weight 0, to finish their connections.

use super::candidates::Candidate;
use super::work::PortWork;
use super::{Refusal, achieved};
use crate::hash::Seed;
use crate::virtual_server::RealServer;

/// Lists the real servers.
pub(super) fn run(work: &mut PortWork<'_>) {
    let listed = work
        .candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.reason.is_real_server());
    let real = |candidate: &Candidate<'_>| RealServer {
        address: candidate.endpoint.address,
        port: candidate.port,
        weight: candidate.weight,
    };
    let seed = Seed::of(&work.me().node);
    let mut placed: Vec<(u64, RealServer, usize)> = listed
        .map(|(at, candidate)| (real(candidate), at))
        .map(|(real, at)| (seed.position(real.address, real.port), real, at))
        .collect();
    placed.sort_unstable_by_key(|(position, real, _)| (*position, real.address, real.port));
    work.real_servers = placed.iter().map(|(_, real, _)| *real).collect();
    let order: Vec<usize> = placed.into_iter().map(|(.., at)| at).collect();
    achieved::run(work, &order);
    let serves = work.real_servers.iter().any(|real| real.weight > 0);
    if serves {
        work.refusal = None;
    } else if work.refusal.is_none() {
        work.refusal = Some(refusal(work));
    }
}

/// Why no endpoint was chosen.
fn refusal(work: &PortWork<'_>) -> Refusal {
    let mut candidates = work.candidates.iter();
    if work.candidates.is_empty() {
        Refusal::NoEndpoints
    } else if !candidates.any(Candidate::is_usable) {
        Refusal::NoneReady
    } else if work.source.is_local() {
        Refusal::NoneLocal
    } else if work
        .levelled()
        .is_some_and(|policy| policy.levels.is_empty())
    {
        Refusal::BoundaryUnread
    } else {
        Refusal::NoMatch
    }
}
