//! Ranks the policy objects that select a Service.

use std::cmp::Reverse;

use crate::model::{Enforcement, Labels, OwnerLimits, TopologyPolicy};
use crate::policy::{Level, LevelKey, Policy, PolicySource};
use crate::resolve::decision::LostBecause;
use crate::resolve::port_view::PortView;

/// A policy object that selects the Service.
pub(super) struct Ranked<'a> {
    pub(super) object: &'a TopologyPolicy,
    source: PolicySource,
    /// Why it does not apply to this port or node.
    pub(super) mismatch: Option<LostBecause>,
}

/// The policy objects that select the Service, by priority, age and name, and the one that its annotation names.
#[derive(Default)]
pub(super) struct Ranking<'a> {
    selected: Vec<Ranked<'a>>,
    named: Option<Ranked<'a>>,
}

impl<'a> Ranking<'a> {
    pub(super) fn of(view: &PortView<'a>) -> Self {
        let service = view.service;
        let selecting = view.snapshot.policies_for(service);
        let mut selected: Vec<_> = selecting.map(|object| ranked(object, view)).collect();
        selected.sort_by_key(|ranked| {
            let object = ranked.object;
            let age = object.created.unwrap_or(i64::MAX);
            (Reverse(object.priority), age, &object.name)
        });
        let name = service.named_policy.as_ref();
        let named = name.and_then(|name| view.snapshot.policy(&service.name.namespace, name));
        Self {
            selected,
            named: named.map(|object| ranked(object, view)),
        }
    }

    /// The policy objects of one source, the best first.
    pub(super) fn of_source(&self, source: PolicySource) -> impl Iterator<Item = &Ranked<'a>> {
        let ranked = self.selected.iter();
        ranked.filter(move |ranked| ranked.source == source && !self.is_named(ranked))
    }

    /// The policy object that the Service's annotation names, if it exists.
    pub(super) const fn named(&self) -> Option<&Ranked<'a>> {
        self.named.as_ref()
    }

    /// The owner limits: those of the best cluster policy that has some, otherwise of the best one in the namespace.
    pub(super) fn limits(&self) -> Option<(&'a TopologyPolicy, &'a OwnerLimits)> {
        let of = |cluster: bool| {
            let ranked = self.selected.iter();
            // Limits apply even if the policy's levels do not.
            let here = ranked
                .filter(|ranked| matches!(ranked.mismatch, None | Some(LostBecause::LevelUnknown)));
            let mut kind = here.filter(move |ranked| ranked.object.namespace.is_none() == cluster);
            kind.find_map(|ranked| Some((ranked.object, ranked.object.owner_limits.as_ref()?)))
        };
        of(true).or_else(|| of(false))
    }

    fn is_named(&self, ranked: &Ranked<'_>) -> bool {
        let named = self.named.as_ref();
        named.is_some_and(|named| std::ptr::eq(named.object, ranked.object))
    }
}

fn ranked<'a>(object: &'a TopologyPolicy, view: &PortView<'a>) -> Ranked<'a> {
    let source = match (&object.namespace, object.enforcement) {
        (Some(_), _) => PolicySource::NamespacePolicy,
        (None, Enforcement::Override) => PolicySource::ClusterOverride,
        (None, Enforcement::Default) => PolicySource::ClusterDefault,
    };
    let nothing = Labels::default();
    let labels = view.own_node.map_or(&nothing, |node| &node.labels);
    let mismatch = if !object.port_names.is_empty() && !object.port_names.contains(&view.port.name)
    {
        Some(LostBecause::OtherPort)
    } else if !object.node_selector.matches(labels) {
        Some(LostBecause::OtherNode)
    } else if object.namespace.is_none() && refuses_everywhere(&object.policy, view) {
        Some(LostBecause::LevelUnknown)
    } else {
        None
    };
    Ranked {
        object,
        source,
        mismatch,
    }
}

/// Whether a hard policy would refuse every client in the cluster: no Node has the label of any of its levels.
fn refuses_everywhere(policy: &Policy, view: &PortView<'_>) -> bool {
    let exists = |level: &Level| match &level.key {
        LevelKey::Label(key) => view.snapshot.has_label(key),
        LevelKey::Node | LevelKey::Any => true,
    };
    policy.is_bounded() && !policy.levels.iter().any(exists)
}

/// Why `other` ranks behind `best`.
pub(super) fn behind(best: &TopologyPolicy, other: &TopologyPolicy) -> LostBecause {
    let age = |object: &TopologyPolicy| object.created.unwrap_or(i64::MAX);
    if other.priority < best.priority {
        LostBecause::LowerPriority
    } else if age(other) > age(best) {
        LostBecause::Younger
    } else {
        LostBecause::LaterName
    }
}
