//! What decides the endpoints: the first of these that applies, never a mixture.
//!
//! 1. `internalTrafficPolicy: Local`; 2. the Service's policy (annotations, else `topologyKeys`);
//! 3. hints, as kube-proxy 1.35 reads them; 4. nothing: every ready endpoint alike.

use super::categorize::{self, Categories, NodeHints, Place, Topology, Traffic};
use super::work::Work;
use crate::model::{Endpoint, TrafficPolicy};
use crate::policy::{Mode, Policy, PolicySource, ZONE};

/// What decides.
#[derive(Clone, Copy)]
pub(super) enum Rule<'a> {
    /// `internalTrafficPolicy: Local`.
    Local,
    /// Annotations or `topologyKeys`.
    Policy(&'a Policy),
    /// Hints, or nothing: what kube-proxy does.
    KubeProxy(Topology),
}

/// Finds out what decides, and notes it for the decision.
pub(super) fn choose(work: &mut Work<'_>) {
    let service = work.view.service;
    if service.internal_traffic_policy == TrafficPolicy::Local {
        work.listed = categories(work, TrafficPolicy::Local)
            .local
            .unwrap_or_default();
        work.rule = Rule::Local;
        (work.source, work.mode) = (PolicySource::TrafficPolicyLocal, Mode::Hard);
    } else if let Some(policy) = &service.policy {
        work.rule = Rule::Policy(policy);
        (work.source, work.mode) = (policy.source, policy.mode);
    } else {
        let categories = categories(work, TrafficPolicy::Cluster);
        work.listed = categories.cluster.unwrap_or_default();
        work.rule = Rule::KubeProxy(categories.topology);
        (work.source, work.mode) = match categories.topology {
            Topology::Anywhere => (PolicySource::Uniform, Mode::None),
            Topology::SameNode | Topology::SameZone => (PolicySource::Hints, Mode::Prefer),
        };
    }
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
