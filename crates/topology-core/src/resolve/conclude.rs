//! Builds the virtual server and its decision after the stages.

use std::sync::Arc;

use super::candidates::Candidate;
use super::decision::{Decision, EndpointDecision, LevelDecision};
use super::resolution::ResolvedServer;
use super::source;
use super::work::{LevelState, PortWork};
use crate::virtual_server::VirtualServer;

impl PortWork<'_> {
    /// Returns the virtual server and its decision.
    pub(super) fn conclude(mut self) -> ResolvedServer {
        let view = self.view;
        let server = VirtualServer {
            key: view.key(),
            scheduler: self.scheduler(),
            persistence: view
                .service
                .session_affinity
                .filter(|_| !view.hashes_clients() && !view.key().is_for_dns()),
            real_servers: Vec::new(),
        };
        let mut resolved = ResolvedServer {
            service: view.service.name.clone(),
            port_name: view.port.name.clone(),
            kind: view.frontend.kind,
            server,
            clients: view.clients(),
            marked: view
                .outside
                .as_ref()
                .map_or_else(Vec::new, |outside| outside.frontends.clone()),
            decision: self.decision(),
            memory: self.memory.take().map(Arc::new),
        };
        resolved.server.real_servers = self.real_servers;
        resolved
    }

    fn decision(&mut self) -> Decision {
        let both = self.candidates.iter().chain(&self.refused);
        let mut endpoints: Vec<EndpointDecision> =
            both.map(|candidate| self.endpoint(candidate)).collect();
        self.lost.extend(source::hints::unused(self));
        let missing = source::hints::missing(self);
        self.notes.splice(..0, missing);
        if !self.refused.is_empty() {
            endpoints.sort_by_key(|endpoint| (endpoint.address, endpoint.port));
        }
        Decision {
            source: self.source,
            policy: self.decided_by.take(),
            lost: std::mem::take(&mut self.lost).into(),
            mode: self.mode,
            levels: self.levels.iter().map(level).collect(),
            avoided: self.avoided().into_iter().cloned().collect(),
            endpoints,
            notes: std::mem::take(&mut self.notes),
            stages: std::mem::take(&mut self.records),
            quantised: self.quantised,
            refusal: self.refusal,
            on_no_match: self.on_no_match,
        }
    }

    fn endpoint(&self, candidate: &Candidate<'_>) -> EndpointDecision {
        let level = candidate.level.and_then(|level| self.levels.get(level));
        EndpointDecision {
            address: candidate.endpoint.address,
            port: candidate.port,
            node: candidate.endpoint.node.clone(),
            zone: candidate.zone.cloned(),
            terminating: candidate.endpoint.terminating,
            level: level.map(|level| level.key.clone()),
            weight: candidate.weight,
            share: candidate.share,
            reason: candidate.reason,
        }
    }
}

fn level(level: &LevelState) -> LevelDecision {
    LevelDecision {
        key: level.key.clone(),
        configured: level.configured,
        desired: level.desired,
        share: level.share,
        achieved: level.achieved,
        usable: level.usable,
        draining: level.draining,
        total: level.total,
    }
}
