//! Converts decisions, findings and plans into views. No other module does.

// A new source, reason, note or fact must be handled everywhere, not by a `_` arm.
#![warn(clippy::wildcard_enum_match_arm)]

use std::net::SocketAddr;

use topology_core::model::{Node, ObjectName, Unprogrammed};
use topology_core::plan::Step;
use topology_core::policy::{LevelKey, PolicySource};
use topology_core::resolve::{
    Decision, EndpointDecision, Finding, LevelDecision, Note, Reason, ResolvedServer,
};
use topology_core::snapshot::{FrontendKey, Snapshot};
use topology_core::virtual_server::VirtualServerKey;

use crate::policy_text;
use crate::view::{
    DiffView, ExcludedView, LevelView, NotProgrammedView, NoteView, PolicyView, RealServerView,
    ServerView, StepChange, StepView, WarningView,
};

/// The kind of what a headless Service has instead of virtual servers.
pub const DNS: &str = "DNS";

/// How many Nodes a message lists if the requested one does not exist.
const NAMED: usize = 5;

/// A resolved virtual server, without data from a kernel.
pub fn server(resolved: &ResolvedServer) -> ServerView {
    let is_for_dns = resolved.server.key.is_for_dns();
    let (address, fwmark) = key(&resolved.server.key);
    let address = address.filter(|_| !is_for_dns);
    let frontends = frontends(resolved);
    let decision = &resolved.decision;
    let (chosen, excluded): (Vec<_>, Vec<_>) = decision
        .endpoints
        .iter()
        .partition(|endpoint| endpoint.is_chosen());
    let mut real_servers: Vec<_> = chosen
        .iter()
        .map(|one| (rank(decision, one), *one))
        .collect();
    real_servers.sort_by_key(|(rank, one)| (*rank, one.address, one.port));
    ServerView {
        service: resolved.service.to_string(),
        port_name: resolved
            .port_of_slices()
            .map_or_else(String::new, ToString::to_string),
        kind: kind(resolved).to_owned(),
        protocol: frontends
            .first()
            .map_or_else(String::new, |one| one.protocol.to_string()),
        address: address.map(|address| address.ip()),
        port: address.map(|address| address.port()),
        fwmark,
        clients: resolved.clients.as_str().to_owned(),
        frontends: frontends
            .iter()
            .map(|one| SocketAddr::new(one.address, one.port).to_string())
            .collect(),
        scheduler: resolved.server.scheduler.to_string(),
        persistence_seconds: resolved.server.persistence.unwrap_or_default(),
        policy: policy(decision),
        notes: decision.notes.iter().map(note).collect(),
        refusal: decision.refusal.map(|refusal| refusal.to_string()),
        refusal_code: decision.refusal.map(|refusal| refusal.code().to_owned()),
        real_servers: real_servers
            .into_iter()
            .map(|(_, one)| real_server(decision, one))
            .collect(),
        excluded: excluded.into_iter().map(excluded_endpoint).collect(),
        kernel: None,
    }
}

/// The kind of the address, or [`DNS`].
pub const fn kind(resolved: &ResolvedServer) -> &'static str {
    if resolved.server.key.is_for_dns() {
        DNS
    } else {
        resolved.kind.as_str()
    }
}

fn note(note: &Note) -> NoteView {
    NoteView {
        code: note.code().to_owned(),
        stage: format!("S{}", note.stage()),
        words: note.to_string(),
    }
}

/// The address or the mark of a key.
const fn key(key: &VirtualServerKey) -> (Option<SocketAddr>, Option<u32>) {
    match *key {
        VirtualServerKey::Address { address, port, .. } => {
            (Some(SocketAddr::new(address, port)), None)
        }
        VirtualServerKey::FirewallMark { mark, .. } => (None, Some(mark)),
    }
}

/// Where the clients of a virtual server connect.
fn frontends(resolved: &ResolvedServer) -> Vec<FrontendKey> {
    if resolved.server.key.is_for_dns() {
        return Vec::new();
    }
    match resolved.server.key {
        VirtualServerKey::Address {
            protocol,
            address,
            port,
        } => vec![FrontendKey {
            address,
            protocol,
            port,
        }],
        VirtualServerKey::FirewallMark { .. } => resolved.marked.clone(),
    }
}

fn policy(decision: &Decision) -> PolicyView {
    let levels = if has_levels(decision) {
        decision.levels.as_slice()
    } else {
        &[]
    };
    PolicyView {
        source: decision.source.as_str().to_owned(),
        mode: decision.mode.as_str().to_owned(),
        words: policy_text::policy(decision),
        levels: levels.iter().map(level).collect(),
    }
}

/// Whether the decision has levels: without a policy all endpoints are in one nameless level.
pub fn has_levels(decision: &Decision) -> bool {
    decision.source != PolicySource::Uniform && decision.mode.as_str() != "none"
}

fn level(level: &LevelDecision) -> LevelView {
    LevelView {
        level: level.key.to_string(),
        usable: level.usable,
        draining: level.draining,
        total: level.total,
        desired: level.desired.to_f64(),
        share: level.share.to_f64(),
        programmed: level.achieved.to_f64(),
    }
}

/// The position of an endpoint's level, nearest first.
fn rank(decision: &Decision, endpoint: &EndpointDecision) -> usize {
    let same = |level: &LevelDecision| Some(&level.key) == endpoint.level.as_ref();
    decision.levels.iter().position(same).unwrap_or(usize::MAX)
}

fn real_server(decision: &Decision, endpoint: &EndpointDecision) -> RealServerView {
    let level = endpoint.level.as_ref().filter(|_| has_levels(decision));
    RealServerView {
        address: endpoint.address,
        port: endpoint.port,
        node: endpoint.node.as_deref().map(str::to_owned),
        zone: endpoint.zone.as_deref().map(str::to_owned),
        level: level.map(LevelKey::to_string),
        weight: endpoint.weight,
        share: endpoint.share.to_f64(),
        state: state(endpoint.reason).to_owned(),
        reason: reason(decision, endpoint),
        code: endpoint.reason.code().to_owned(),
        connections: None,
        drain_seconds_left: None,
    }
}

/// Whether the endpoint gets new connections.
const fn state(reason: Reason) -> &'static str {
    if matches!(reason, Reason::Drained) {
        "draining"
    } else {
        "active"
    }
}

/// Why an endpoint was chosen, with its level's share if it has one.
fn reason(decision: &Decision, endpoint: &EndpointDecision) -> String {
    let level = decision.levels.get(rank(decision, endpoint));
    let Some(level) = level.filter(|_| endpoint.reason == Reason::InLevel) else {
        return endpoint.reason.to_string();
    };
    let LevelDecision {
        key, share, usable, ..
    } = level;
    match usable {
        1 => format!("alone in level {key}, which has {share}"),
        count => format!("one of {count} in level {key}, which has {share}"),
    }
}

fn excluded_endpoint(endpoint: &EndpointDecision) -> ExcludedView {
    ExcludedView {
        address: endpoint.address,
        port: endpoint.port,
        node: endpoint.node.as_deref().map(str::to_owned),
        zone: endpoint.zone.as_deref().map(str::to_owned),
        reason: endpoint.reason.code().to_owned(),
        words: endpoint.reason.to_string(),
    }
}

/// A part of a Service that is not programmed.
pub fn not_programmed(service: &ObjectName, part: &Unprogrammed) -> NotProgrammedView {
    NotProgrammedView {
        service: service.to_string(),
        field: part.field.to_string(),
        reason: part.reason.to_string(),
    }
}

/// A finding about a Service.
pub fn finding(finding: &Finding) -> WarningView {
    WarningView {
        code: finding.kind.code().to_owned(),
        file: None,
        line: None,
        object: Some(format!("Service {}", finding.service)),
        field: None,
        message: finding.kind.to_string(),
        remedy: Some(finding.kind.remedy().to_owned()),
        text: finding.to_string(),
    }
}

/// A warning about a file.
pub fn warning(warning: &cluster::warning::Warning) -> WarningView {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    WarningView {
        code: warning.code.as_str().to_owned(),
        file: text(&warning.file),
        line: (warning.line > 0).then(|| warning.line.into()),
        object: text(&warning.subject.to_string()),
        field: text(&warning.field),
        message: warning.message.to_string(),
        remedy: text(&warning.remedy),
        text: warning.to_string(),
    }
}

/// Warns if the cluster has Nodes, but not this one: most likely the name is misspelled.
pub fn unknown_node(snapshot: &Snapshot, node: &str) -> Option<WarningView> {
    if snapshot.node(node).is_some() {
        return None;
    }
    let mut names: Vec<&Node> = snapshot.nodes().collect();
    names.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    let count = names.len();
    let some: Vec<&str> = names.iter().take(NAMED).map(|node| &*node.name).collect();
    let known = match (count, count.saturating_sub(NAMED)) {
        (0, _) => "the input has no Node".to_owned(),
        (_, 0) => format!("the input has {}", some.join(", ")),
        (_, more) => format!("the input has {} and {more} more", some.join(", ")),
    };
    let message = format!("there is no Node {node}, so no endpoint is near it");
    let remedy = format!("correct the name, or add the Node; {known}");
    Some(WarningView {
        code: "NodeUnknown".to_owned(),
        file: None,
        line: None,
        object: Some(format!("Node {node}")),
        field: None,
        text: format!("Node {node}: {message}; {remedy}"),
        message,
        remedy: Some(remedy),
    })
}

/// The steps of a plan, in order.
pub fn diff(steps: &[Step]) -> DiffView {
    DiffView {
        equal: steps.is_empty(),
        steps: steps.iter().map(step).collect(),
    }
}

fn step(step: &Step) -> StepView {
    let change = match step {
        Step::AddServer { .. } | Step::AddReal { .. } => StepChange::Add,
        Step::EditServer { .. } | Step::EditReal { .. } | Step::DrainReal { .. } => {
            StepChange::Edit
        }
        Step::DeleteServer { .. } | Step::DeleteReal { .. } => StepChange::Delete,
        Step::DeleteFlows { .. } => StepChange::Other,
    };
    StepView {
        change,
        command: step.to_string(),
    }
}
