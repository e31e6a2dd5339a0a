//! Determines which virtual servers of a Service may be programmed on this node, and why others may not.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU16;

use dataplane::nftables::{Element, SetElement, SetId};
use topology_core::mirror::Mirror;
use topology_core::model::{FrontendKind, ObjectName, Protocol};
use topology_core::resolve::{
    Clients, Decision, Finding, Note, Refusal, Resolution, ResolvedServer, Viewpoint,
};
use topology_core::scheduler::Scheduler;
use topology_core::snapshot::Snapshot;
use topology_core::virtual_server::{VirtualServer, VirtualServerKey};

use super::addresses::HostAddresses;
use super::desired::DesiredService;
use super::elements;
use super::firewall_marks::keys_of;

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
    snapshot: &Snapshot,
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
    let (mut keys, mut vips, mut elements) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let object = snapshot.service(service);
    let mut servers = Vec::with_capacity(resolved.len());
    let marked = resolved.iter().flat_map(|server| &server.marked).copied();
    let marked = marked.collect();
    for resolved in resolved {
        let key = resolved.server.key;
        let endpoints = &resolved.decision.endpoints;
        desired.endpoints = desired.endpoints.max(endpoints.len());
        if resolved.decision.refusal == Some(Refusal::NoneLocal) {
            let policy = match resolved.clients {
                Clients::Outside => "external",
                Clients::All | Clients::Inside => "internal",
            };
            let gap = (key.family().as_str(), policy);
            desired.without_local.insert(gap);
        }
        let link = address(&key).and_then(|address| addresses.link_of(address));
        if let (Some(link), FrontendKind::ClusterIp) = (link, resolved.kind) {
            let words = refusal(&resolved, link);
            desired.refused.insert(key, words);
            continue;
        }
        if link.is_none() && resolved.kind != FrontendKind::NodePort {
            vips.extend(address(&key));
        }
        if let Some(object) = object {
            elements.extend(elements::elements(&resolved, object, &me.node, &marked));
        }
        keys.insert(key);
        servers.push(ProgrammableServer {
            unchosen: resolved.decision.unchosen().collect(),
            lacks: lacking(&resolved.decision),
            server: resolved.server,
        });
    }
    let port = object.and_then(|object| object.health_check_node_port);
    let ports = port.into_iter();
    elements.extend(ports.flat_map(|port| health_elements(&vips, port)));
    desired.keys = keys.into_iter().collect();
    desired.vips = vips.into_iter().collect();
    desired.elements = elements.into_iter().collect();
    report(&mut desired, service, &findings);
    (desired, servers)
}

/// Stores the findings and refusals for the owner of the Service.
fn report(desired: &mut DesiredService, service: &ObjectName, findings: &[Finding]) {
    let all = findings.len() + desired.refused.len();
    desired.finding_codes = findings.iter().map(|finding| finding.kind.code()).collect();
    let findings = findings.iter().map(ToString::to_string);
    let findings = findings.chain(desired.refused.values().cloned());
    desired.findings = findings.take(MAX_FINDINGS).collect();
    if all > MAX_FINDINGS {
        let more = all - MAX_FINDINGS;
        desired.findings.push(format!(
            "Service {service}: {more} more warnings like these; `ipvs-topo status {service}` shows them"
        ));
    }
}

/// The health check port is open at the Service's own addresses, too: some load balancers ask there.
fn health_elements(vips: &BTreeSet<IpAddr>, port: NonZeroU16) -> impl Iterator<Item = SetElement> {
    let listener = move |vip: &IpAddr| Element::Listener(*vip, Protocol::Tcp, port.get());
    let listeners = vips.iter().map(listener);
    listeners.map(|listener| (SetId::Health, listener))
}

/// The virtual servers for marks that `asked` has no more, while the kernel has real servers in them: those of `held`, and
/// those of `released`, the Service's released marks, which an earlier process may have programmed.
///
/// Their real servers drain: deleting the virtual server would end the connections of outside clients, which go on
/// when the Service changes to `externalTrafficPolicy: Cluster`.
pub(super) fn draining_marks(
    mirror: &Mirror,
    held: Option<&DesiredService>,
    released: &[u32],
    asked: &DesiredService,
    servers: &[ProgrammableServer],
) -> Vec<ProgrammableServer> {
    let held = held.into_iter().flat_map(|held| &held.keys).copied();
    let held = held.filter(|key| matches!(key, VirtualServerKey::FirewallMark { .. }));
    let released = released.iter().flat_map(|mark| keys_of(*mark));
    let keys: BTreeSet<VirtualServerKey> = held.chain(released).collect();
    let leaving = keys.into_iter().filter(|key| !asked.keys.contains(key));
    let mut targets = Vec::new();
    for key in leaving.filter(|key| mirror.is_ours(key)) {
        let observed = mirror.get(&key);
        let Some(observed) = observed.filter(|observed| !observed.real_servers.is_empty()) else {
            continue;
        };
        let endpoints = servers.iter().flat_map(|target| {
            let reals = target.server.real_servers.iter();
            let chosen = reals.map(|real| (real.address, real.port));
            chosen.chain(target.unchosen.iter().copied())
        });
        let unchosen: BTreeSet<_> = endpoints.collect();
        if unchosen.is_empty() {
            continue;
        }
        targets.push(ProgrammableServer {
            server: VirtualServer {
                key,
                scheduler: observed.scheduler.parse().unwrap_or_default(),
                persistence: observed.persistence,
                real_servers: Vec::new(),
            },
            unchosen: unchosen.into_iter().collect(),
            lacks: None,
        });
    }
    targets
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

/// Why a cluster IP must never be programmed on this node (T03).
fn refusal(resolved: &ResolvedServer, link: &str) -> String {
    let service = &resolved.service;
    let address = address(&resolved.server.key).map_or_else(String::new, |ip| ip.to_string());
    format!(
        "Service {service}: {address} is an address of this machine (link {link}) and is not programmed; give \
         the Service another, or take it from the link"
    )
}

fn address(key: &VirtualServerKey) -> Option<IpAddr> {
    match key {
        VirtualServerKey::Address { address, .. } => Some(*address),
        VirtualServerKey::FirewallMark { .. } => None,
    }
}
