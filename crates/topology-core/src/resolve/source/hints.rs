//! Explains hints on endpoints that did not decide.
//!
//! As in kube-proxy 1.35, hints count only if every ready endpoint has them: those for Nodes if one names this Node,
//! otherwise those for zones if one names this Node's zone (`pkg/proxy/topology.go`).

use crate::hints::HintMode;
use crate::model::{Endpoint, Hints};
use crate::policy::{PolicySource, ZONE};
use crate::resolve::candidates::Candidate;
use crate::resolve::decision::{Lost, LostBecause, Note};
use crate::resolve::work::PortWork;

/// Why hints did not decide; `None` if there are none, or if they did.
pub(in crate::resolve) fn unused(work: &PortWork<'_>) -> Option<Lost> {
    let usable = work.candidates.iter();
    let ready = usable
        .filter(|candidate| candidate.is_ready() && !candidate.excluded)
        .map(|candidate| candidate.endpoint);
    if !ready.clone().any(|endpoint| endpoint.hints.is_some()) {
        return None;
    }
    let why = match work.source {
        PolicySource::Hints => return None,
        PolicySource::Uniform => {
            let nodes = ready
                .clone()
                .all(|one| has(one, |hints| !hints.nodes.is_empty()));
            let zones = ready
                .clone()
                .all(|one| has(one, |hints| !hints.zones.is_empty()));
            let zone = work.own_node().and_then(|node| node.labels.get(ZONE));
            let placed = zone.is_some_and(|zone| !zone.is_empty());
            match (nodes, zones) {
                (false, false) => LostBecause::PartlyHinted,
                (_, true) if !placed => LostBecause::NodeWithoutZone,
                _ => LostBecause::HintedElsewhere,
            }
        }
        PolicySource::InternalTrafficPolicyLocal
        | PolicySource::ExternalTrafficPolicyLocal
        | PolicySource::ClusterOverride
        | PolicySource::Annotation
        | PolicySource::TopologyKeys
        | PolicySource::NamespacePolicy
        | PolicySource::ClusterDefault => LostBecause::Weaker,
    };
    Some(Lost {
        source: PolicySource::Hints,
        policy: None,
        why,
    })
}

/// A note if the Service requests hints, no endpoint has any, and no other source decides.
pub(in crate::resolve) fn missing(work: &PortWork<'_>) -> Option<Note> {
    let mode = work.view.service.hint_mode;
    let mut candidates = work.candidates.iter();
    let ready = candidates.clone().any(Candidate::is_ready);
    let hinted = candidates.any(|one| one.endpoint.hints.is_some());
    let is_missing = work.source == PolicySource::Uniform && ready && !hinted;
    (is_missing && mode != HintMode::Nothing).then_some(Note::HintsMissing { mode })
}

fn has(endpoint: &Endpoint, what: impl Fn(&Hints) -> bool) -> bool {
    endpoint.hints.as_ref().is_some_and(|hints| what(hints))
}
