//! Finds what decides the endpoints: the first of these that applies. Sources are never combined.
//!
//! 1. `internalTrafficPolicy: Local` for clients of a cluster IP, `externalTrafficPolicy: Local` for outside clients;
//! 2. a `ClusterTopologyPolicy` that overrides;
//! 3. the Service's annotations, otherwise its `topologyKeys`, within the owner limits of an administrator; or the
//!    `TopologyPolicy` that an annotation names;
//! 4. a `TopologyPolicy` of the namespace;
//! 5. any other `ClusterTopologyPolicy`;
//! 6. hints, as in kube-proxy 1.35;
//! 7. nothing: every ready endpoint gets the same share.
//!
//! Of several policies of one kind the one with the highest priority decides, then the oldest, then the first by name.

pub(super) mod hints;

mod limits;
mod ranking;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::categorize::Topology;
use super::decision::{Lost, LostBecause, Note};
use super::port_view::PortView;
use crate::model::{Faults, Node, PolicyName, Service, TopologyPolicy, TrafficPolicy};
use crate::policy::{LevelKey, Policy, PolicySource, suggest};
use crate::snapshot::Snapshot;
use ranking::{PortRanking, Ranking};

/// What decides the endpoints.
#[derive(Clone, Copy)]
pub(super) enum DecidingRule<'a> {
    /// The traffic policy of the frontend is Local.
    Local,
    /// One of our policies, from any source.
    Policy(&'a Policy),
    /// Hints or nothing, with kube-proxy's rules.
    KubeProxy(Topology),
}

/// The most policy objects of one kind that a decision lists because they do not decide.
const MOST_LISTED: usize = 20;

/// The rule that decides, and the sources that do not.
#[derive(Clone)]
pub(super) struct Choice<'a> {
    pub(super) rule: DecidingRule<'a>,
    pub(super) source: PolicySource,
    pub(super) decided_by: Option<PolicyName>,
    pub(super) lost: Vec<Lost>,
    /// The number of policy objects that do not decide and are not in `lost`.
    unlisted: usize,
    pub(super) notes: Vec<Note>,
    /// The policy of annotations without levels, which is added to the rule.
    pub(super) added: Option<&'a Policy>,
    /// The effective cap.
    pub(super) max_overload: Option<u32>,
}

/// What may decide the ports of one Service.
pub(super) struct Sources<'a> {
    ranking: Ranking<'a>,
    /// The level that was most likely meant, for each label that no Node has.
    similar: FxHashMap<Arc<str>, Option<String>>,
}

impl<'a> Sources<'a> {
    /// Finds what may decide the ports of `service` with these names.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        service: &'a Service,
        own_node: Option<&Node>,
        ports: &[&str],
    ) -> Self {
        Self {
            ranking: Ranking::of(snapshot, service, own_node, ports),
            similar: FxHashMap::default(),
        }
    }

    /// Finds what decides one of the ports.
    pub(super) fn choose(&mut self, view: &PortView<'a>) -> Choice<'a> {
        let mut choice = Choice {
            rule: DecidingRule::KubeProxy(Topology::Anywhere),
            source: PolicySource::Uniform,
            decided_by: None,
            lost: Vec::new(),
            unlisted: 0,
            notes: Vec::new(),
            added: None,
            max_overload: None,
        };
        if view.traffic_policy() == TrafficPolicy::Local {
            (choice.rule, choice.source) = (DecidingRule::Local, view.local_source());
        }
        let ranking = &self.ranking;
        let port = &*view.port.name;
        choice.consider_objects(PolicySource::ClusterOverride, &ranking.overriding.at(port));
        choice.consider_owner(view, ranking);
        choice.consider_objects(
            PolicySource::NamespacePolicy,
            &ranking.of_namespace.at(port),
        );
        choice.consider_objects(PolicySource::ClusterDefault, &ranking.of_cluster.at(port));
        choice.note_unlisted();
        choice.note_unknown_levels(view, &mut self.similar);
        choice.note_unreachable_levels(view);
        choice
    }
}

impl<'a> Choice<'a> {
    /// The policy that decides.
    pub(super) const fn policy(&self) -> Option<&'a Policy> {
        match self.rule {
            DecidingRule::Policy(policy) => Some(policy),
            DecidingRule::Local | DecidingRule::KubeProxy(_) => None,
        }
    }

    /// Whether no source has decided yet.
    const fn is_open(&self) -> bool {
        matches!(self.source, PolicySource::Uniform)
    }

    fn decide_by(&mut self, policy: &'a Policy, source: PolicySource) {
        self.rule = DecidingRule::Policy(policy);
        self.source = source;
        self.max_overload = policy.max_overload;
    }

    fn lose(&mut self, source: PolicySource, object: Option<&TopologyPolicy>, why: LostBecause) {
        let policy = object.map(TopologyPolicy::id);
        self.lost.push(Lost {
            source,
            policy,
            why,
        });
    }

    /// Considers the policy objects of one kind.
    fn consider_objects(&mut self, source: PolicySource, ranking: &PortRanking<'_, 'a>) {
        let best = ranking.best();
        let decider = best.filter(|_| self.is_open());
        if let Some(object) = decider {
            self.decide_by(&object.policy, source);
            self.decided_by = Some(object.id());
        }
        let is_same = |other: Option<&TopologyPolicy>, object: &TopologyPolicy| {
            other.is_some_and(|other| std::ptr::eq(other, object))
        };
        let others = ranking
            .iter()
            .filter(|(object, _)| !is_same(decider, object));
        for (object, mismatch) in others.take(MOST_LISTED) {
            let why = match (mismatch, best) {
                (Some(why), _) => why,
                (None, Some(best)) if !is_same(Some(best), object) => ranking::behind(best, object),
                (None, _) => LostBecause::Weaker,
            };
            self.lose(source, Some(object), why);
        }
        let lost = ranking.len() - usize::from(decider.is_some());
        self.unlisted += lost.saturating_sub(MOST_LISTED);
    }

    /// Notes how many policy objects are not listed.
    fn note_unlisted(&mut self) {
        if self.unlisted > 0 {
            let count = self.unlisted;
            self.notes.push(Note::PoliciesNotListed { count });
        }
    }

    /// Considers the annotations and `topologyKeys` of the Service.
    fn consider_owner(&mut self, view: &PortView<'a>, ranking: &Ranking<'a>) {
        let service = view.service;
        self.consider_faults(service);
        if let Some(name) = &service.named_policy {
            self.consider_named(view, name, ranking);
        }
        let Some(policy) = view.service.policy.as_deref() else {
            return;
        };
        if policy.adds {
            self.add(policy);
            return;
        }
        if !self.is_open() {
            self.lose(policy.source, None, LostBecause::Weaker);
            return;
        }
        let limits = ranking.limits(&view.port.name);
        let denied = limits.filter(|(_, limits)| !limits::allows(limits, policy.mode));
        if let Some((object, _)) = denied {
            self.lose(policy.source, None, LostBecause::NotAllowed);
            let (asked, by) = (policy.mode, object.id());
            self.notes.push(Note::NotAllowed { asked, by });
            return;
        }
        self.decide_by(policy, policy.source);
        if let Some((object, limits)) = limits {
            self.max_overload = limits::clip(limits, policy.max_overload);
            if let (Some(asked), Some(given)) = (policy.max_overload, self.max_overload)
                && asked != given
            {
                let by = object.id();
                self.notes.push(Note::Clipped { asked, given, by });
            }
        }
    }

    /// Adds annotations without levels. A policy that overrides gets nothing added. With traffic policy Local no
    /// endpoint is avoided.
    fn add(&mut self, policy: &'a Policy) {
        if self.source == PolicySource::ClusterOverride {
            self.lose(policy.source, None, LostBecause::Weaker);
            return;
        }
        if matches!(self.rule, DecidingRule::Local) && !policy.avoid.is_empty() {
            self.notes.push(Note::AvoidLocal);
        }
        self.added = Some(policy);
    }

    /// Notes labels of the policy, and of what is added to it, that no Node has. The search for `similar` labels is
    /// too expensive to repeat for each port.
    fn note_unknown_levels(
        &mut self,
        view: &PortView<'_>,
        similar: &mut FxHashMap<Arc<str>, Option<String>>,
    ) {
        for policy in self.policy().into_iter().chain(self.added) {
            let keys = policy.label_keys();
            for key in keys.filter(|key| !view.snapshot.has_label(key)) {
                let search = || suggest(key, view.snapshot.node_labels());
                let found = similar.entry(Arc::clone(key)).or_insert_with(search);
                let level = LevelKey::Label(Arc::clone(key));
                let similar = found.as_ref().map(|name| policy.source.level_name(name));
                let similar = similar.map(str::to_owned);
                self.notes.push(Note::LevelUnknown { level, similar });
            }
        }
    }

    /// Notes levels that never contain an endpoint, because an earlier level contains all that could be in them.
    fn note_unreachable_levels(&mut self, view: &PortView<'_>) {
        let Some(own) = view.own_node else {
            return;
        };
        // A level whose label this Node lacks contains no endpoint, so it takes none from later levels.
        let holds = |key: &LevelKey| {
            let value = key.label().and_then(|label| own.labels.get(label));
            value.is_some_and(|value| !value.is_empty())
        };
        let pairs = self.policy().into_iter().flat_map(Policy::covered_levels);
        let here = pairs.filter(|(_, by)| holds(by));
        let notes: Vec<Note> = here
            .map(|(level, by)| Note::LevelUnreachable {
                level: level.clone(),
                by: by.clone(),
            })
            .collect();
        self.notes.extend(notes);
    }

    /// Notes invalid settings of the Service.
    fn consider_faults(&mut self, service: &Service) {
        match service.faults {
            Faults::None | Faults::Pending => {}
            Faults::Some if service.policy.is_none() && service.named_policy.is_none() => {
                self.lose(PolicySource::Annotation, None, LostBecause::Invalid);
            }
            Faults::Some => self.notes.push(Note::PartlyInvalid),
            Faults::Boundary => self.notes.push(Note::BoundaryUnread),
            Faults::LastGood => self.notes.push(Note::LastGoodStays),
        }
    }

    /// Considers the policy object that an annotation names.
    fn consider_named(&mut self, view: &PortView<'a>, name: &Arc<str>, ranking: &Ranking<'a>) {
        let Some(ranked) = ranking.named() else {
            self.notes.push(Note::NoSuchPolicy { name: name.clone() });
            return;
        };
        if self.is_open() && ranked.applies_to(&view.port.name) {
            self.decide_by(&ranked.object.policy, PolicySource::NamespacePolicy);
            self.decided_by = Some(ranked.object.id());
        }
    }
}
