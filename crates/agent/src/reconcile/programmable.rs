//! Determines which virtual servers of a Service may be programmed on this node, and why others may not.

use std::net::IpAddr;

use topology_core::model::ObjectName;
use topology_core::policy::OnNoMatch;
use topology_core::resolve::{Decision, Note, Refusal, Resolution, Viewpoint};
use topology_core::scheduler::Scheduler;
use topology_core::virtual_server::{VirtualServer, VirtualServerKey};

use super::addresses::HostAddresses;
use super::desired::DesiredService;

/// Most findings of one Service that are kept; the rest are counted in one more.
const MAX_FINDINGS: usize = 20;

/// A desired virtual server, with the endpoints that could serve and are not chosen.
#[derive(Debug)]
pub(super) struct ProgrammableServer {
    pub(super) server: VirtualServer,
    pub(super) unchosen: Vec<(IpAddr, u16)>,
    /// The requested scheduler, if this kernel does not have it.
    pub(super) lacks: Option<Scheduler>,
}

/// The desired state of a Service without decisions, and the servers that may be programmed.
pub(super) fn desired_service(
    service: &ObjectName,
    resolution: Resolution,
    me: &Viewpoint,
    addresses: &HostAddresses,
) -> (DesiredService, Vec<ProgrammableServer>) {
    let Resolution {
        servers: resolved,
        findings,
        ..
    } = resolution;
    let mut desired = DesiredService::default();
    let mut servers = Vec::with_capacity(resolved.len());
    for resolved in resolved {
        let key = resolved.server.key;
        let endpoints = &resolved.decision.endpoints;
        desired.endpoints = desired.endpoints.max(endpoints.len());
        if let Some(words) = refusal(&key, &resolved.service, addresses) {
            desired.refused.insert(key, words);
            continue;
        }
        let here = endpoints
            .iter()
            .filter(|endpoint| endpoint.node.as_ref() == Some(&me.node));
        desired.local.extend(here.map(|endpoint| endpoint.address));
        if is_silent(&resolved.decision) {
            desired.silent.insert(key);
        }
        desired.keys.insert(key);
        servers.push(ProgrammableServer {
            unchosen: resolved.decision.unchosen().collect(),
            lacks: lacking(&resolved.decision),
            server: resolved.server,
        });
    }
    let all = findings.len() + desired.refused.len();
    let findings = findings.iter().map(ToString::to_string);
    let findings = findings.chain(desired.refused.values().cloned());
    desired.findings = findings.take(MAX_FINDINGS).collect();
    if all > MAX_FINDINGS {
        let more = all - MAX_FINDINGS;
        desired.findings.push(format!(
            "Service {service}: {more} more warnings like these; `ipvs-topo status {service}` shows them"
        ));
    }
    (desired, servers)
}

/// The requested scheduler, if it is missing.
fn lacking(decision: &Decision) -> Option<Scheduler> {
    decision.notes.iter().find_map(|note| {
        let Note::SchedulerMissing { asked } = note else {
            return None;
        };
        Some(*asked)
    })
}

/// Whether clients that cannot be served get no reply.
fn is_silent(decision: &Decision) -> bool {
    let no_match = matches!(
        decision.refusal,
        Some(
            Refusal::NoMatch | Refusal::OwnNodeUnknown | Refusal::Avoided | Refusal::BoundaryUnread
        )
    );
    no_match && decision.on_no_match == OnNoMatch::Drop
}

/// Why a key must never be programmed on this node (T03).
fn refusal(
    key: &VirtualServerKey,
    service: &ObjectName,
    addresses: &HostAddresses,
) -> Option<String> {
    let VirtualServerKey::Address { address, .. } = key else {
        return None;
    };
    let link = addresses.link_of(*address)?;
    Some(format!(
        "Service {service}: {address} is an address of this machine (link {link}) and is not programmed; give \
         the Service another, or take it from the link"
    ))
}
