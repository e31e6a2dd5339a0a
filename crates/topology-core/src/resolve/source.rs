//! What decides the endpoints: the first of these that applies, never a mixture.
//!
//! 1. `internalTrafficPolicy: Local`; 2. the Service's policy (annotations, else `topologyKeys`);
//! 3. hints, as kube-proxy 1.35 reads them; 4. nothing: every ready endpoint alike.

use super::categorize::{self, Categories, NodeHints, Place, Topology, Traffic};
use super::reason::Reason;
use super::work::Work;
use super::{Note, Refusal, s00_usable, s04_tiers};
use crate::model::{Endpoint, TrafficPolicy};
use crate::policy::{LevelKey, Mode, PolicySource, ZONE};

/// Gives every candidate its level and its reason.
pub(super) fn select(work: &mut Work<'_>) {
    let service = work.view.service;
    let policy = service
        .policy
        .as_ref()
        .filter(|policy| policy.mode != Mode::None);
    match policy {
        _ if service.internal_traffic_policy == TrafficPolicy::Local => select_local(work),
        Some(policy) => {
            s04_tiers::assign(work, policy);
            s00_usable::choose(work, policy);
        }
        None => select_as_kube_proxy(work),
    }
    work.count();
    if work.refusal.is_none()
        && !work
            .candidates
            .iter()
            .any(|candidate| candidate.reason.is_chosen())
    {
        work.refusal = Some(refusal(work));
    }
}

fn select_local(work: &mut Work<'_>) {
    work.source = PolicySource::TrafficPolicyLocal;
    work.mode = Mode::Hard;
    let categories = categories(work, TrafficPolicy::Local);
    let chosen = categories.local.unwrap_or_default();
    work.one_tier(LevelKey::Node);
    mark(work, &chosen, Reason::Local, Reason::NotLocal);
}

fn select_as_kube_proxy(work: &mut Work<'_>) {
    // Mode `none` of an annotation also switches hints off.
    if let Some(policy) = &work.view.service.policy {
        work.source = policy.source;
        s00_usable::every_usable(work);
        return;
    }
    let categories = categories(work, TrafficPolicy::Cluster);
    let (source, key, reason) = match categories.topology {
        Topology::Anywhere => (PolicySource::Uniform, LevelKey::Any, Reason::Ready),
        Topology::SameNode => (PolicySource::Hints, LevelKey::Node, Reason::NodeHint),
        Topology::SameZone => (
            PolicySource::Hints,
            LevelKey::Label(ZONE.into()),
            Reason::ZoneHint,
        ),
    };
    work.source = source;
    work.mode = if source == PolicySource::Hints {
        Mode::Prefer
    } else {
        Mode::None
    };
    work.one_tier(key);
    mark(
        work,
        &categories.cluster.unwrap_or_default(),
        reason,
        Reason::HintedElsewhere,
    );
}

fn categories(work: &Work<'_>, internal: TrafficPolicy) -> Categories {
    let endpoints: Vec<&Endpoint> = work
        .candidates
        .iter()
        .map(|candidate| candidate.endpoint)
        .collect();
    let zone = work.own_node().and_then(|node| node.labels.get(ZONE));
    let place = Place {
        node: &work.me().node,
        zone: zone.map(|zone| &**zone),
    };
    // A cluster IP sees inside traffic only: whether the Service is reachable from outside is another list's matter.
    let traffic = Traffic {
        internal,
        external: TrafficPolicy::Cluster,
        externally_accessible: false,
    };
    categorize::categorize(&endpoints, traffic, place, NodeHints::Honoured)
}

/// Reasons for the `chosen` candidates, by index, and for the others.
fn mark(work: &mut Work<'_>, chosen: &[usize], reason: Reason, otherwise: Reason) {
    for (index, candidate) in work.candidates.iter_mut().enumerate() {
        candidate.reason = if chosen.binary_search(&index).is_ok() {
            if candidate.endpoint.ready {
                reason
            } else {
                Reason::ServingTerminating
            }
        } else {
            s00_usable::why_unusable(candidate.endpoint).unwrap_or(otherwise)
        };
        if !candidate.reason.is_chosen() && candidate.reason == otherwise {
            candidate.tier = None;
        }
    }
    if work
        .candidates
        .iter()
        .any(|candidate| candidate.reason == Reason::ServingTerminating)
    {
        work.notes.push(Note::ServingTerminating);
    }
}

fn refusal(work: &Work<'_>) -> Refusal {
    let usable = |endpoint: &Endpoint| endpoint.ready || categorize::serves_terminating(endpoint);
    if work.candidates.is_empty() {
        Refusal::NoEndpoints
    } else if !work
        .candidates
        .iter()
        .any(|candidate| usable(candidate.endpoint))
    {
        Refusal::NoneReady
    } else if work.source == PolicySource::TrafficPolicyLocal {
        Refusal::NoneLocal
    } else {
        Refusal::NoMatch
    }
}
