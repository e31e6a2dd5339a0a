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
//! Source: reference 8.4.

pub(super) mod hints;

mod limits;
mod ranking;

use std::sync::Arc;

use super::categorize::Topology;
use super::decision::{Lost, LostBecause, Note};
use super::port_view::PortView;
use crate::model::{Faults, PolicyName, Service, TopologyPolicy, TrafficPolicy};
use crate::policy::{LevelKey, Policy, PolicySource, suggest};
use ranking::Ranking;

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

/// The rule that decides, and the sources that do not.
#[derive(Clone)]
pub(super) struct Choice<'a> {
    pub(super) rule: DecidingRule<'a>,
    pub(super) source: PolicySource,
    pub(super) decided_by: Option<PolicyName>,
    pub(super) lost: Vec<Lost>,
    pub(super) notes: Vec<Note>,
    /// The policy of annotations without levels, which is added to the rule.
    pub(super) added: Option<&'a Policy>,
    /// The effective cap.
    pub(super) max_overload: Option<u32>,
}

/// Finds what decides.
pub(super) fn choose<'a>(view: &PortView<'a>) -> Choice<'a> {
    let mut choice = Choice {
        rule: DecidingRule::KubeProxy(Topology::Anywhere),
        source: PolicySource::Uniform,
        decided_by: None,
        lost: Vec::new(),
        notes: Vec::new(),
        added: None,
        max_overload: None,
    };
    let ranking = Ranking::of(view);
    if view.traffic_policy() == TrafficPolicy::Local {
        (choice.rule, choice.source) = (DecidingRule::Local, view.local_source());
    }
    choice.consider_objects(PolicySource::ClusterOverride, &ranking);
    choice.consider_owner(view, &ranking);
    choice.consider_objects(PolicySource::NamespacePolicy, &ranking);
    choice.consider_objects(PolicySource::ClusterDefault, &ranking);
    choice.note_unknown_levels(view);
    choice.note_unreachable_levels(view);
    choice
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

    /// Considers the policy objects of one kind, the best first.
    fn consider_objects(&mut self, source: PolicySource, ranking: &Ranking<'a>) {
        let mut best: Option<&TopologyPolicy> = None;
        for ranked in ranking.of_source(source) {
            let object = ranked.object;
            let why = match (ranked.mismatch, best) {
                (Some(why), _) => why,
                (None, Some(best)) => ranking::behind(best, object),
                (None, None) => {
                    best = Some(object);
                    if self.is_open() {
                        self.decide_by(&object.policy, source);
                        self.decided_by = Some(object.id());
                        continue;
                    }
                    LostBecause::Weaker
                }
            };
            self.lose(source, Some(object), why);
        }
    }

    /// Considers the annotations and `topologyKeys` of the Service.
    fn consider_owner(&mut self, view: &PortView<'a>, ranking: &Ranking<'a>) {
        let service = view.service;
        self.consider_faults(service);
        if let Some(name) = &service.named_policy {
            self.consider_named(name, ranking);
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
        let limits = ranking.limits();
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

    /// Notes labels of the policy, and of what is added to it, that no Node has.
    fn note_unknown_levels(&mut self, view: &PortView<'_>) {
        let policies = self.policy().into_iter().chain(self.added);
        let notes = policies.flat_map(|policy| {
            let keys = policy.label_keys();
            let unknown = keys.filter(|key| !view.snapshot.has_label(key));
            unknown.map(|key| {
                let suggestion = suggest(key, view.snapshot.node_labels());
                let level = LevelKey::Label(Arc::clone(key));
                let similar = suggestion.map(|name| policy.source.level_name(&name).to_owned());
                Note::LevelUnknown { level, similar }
            })
        });
        let notes: Vec<Note> = notes.collect();
        self.notes.extend(notes);
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
    fn consider_named(&mut self, name: &Arc<str>, ranking: &Ranking<'a>) {
        let Some(ranked) = ranking.named() else {
            self.notes.push(Note::NoSuchPolicy { name: name.clone() });
            return;
        };
        if let (None, true) = (ranked.mismatch, self.is_open()) {
            self.decide_by(&ranked.object.policy, PolicySource::NamespacePolicy);
            self.decided_by = Some(ranked.object.id());
        }
    }
}
