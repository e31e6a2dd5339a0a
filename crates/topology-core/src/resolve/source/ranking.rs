//! Ranks the policy objects that select a Service, once for all of its ports.
//!
//! A tenant may write thousands of policy objects and a Service with thousands of ports. So a port does not search the
//! policy objects: a table has those that name it, and the best of the others is known.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::{Enforcement, Labels, Node, OwnerLimits, Service, TopologyPolicy};
use crate::policy::{Level, LevelKey, Policy};
use crate::resolve::decision::LostBecause;
use crate::snapshot::Snapshot;

/// A policy object that selects the Service.
pub(super) struct Ranked<'a> {
    pub(super) object: &'a TopologyPolicy,
    /// Why it does not apply to any port on this node.
    mismatch: Option<LostBecause>,
}

/// The policy objects that select the Service, by source, and the one that its annotation names.
#[derive(Default)]
pub(super) struct Ranking<'a> {
    pub(super) overriding: SourceRanking<'a>,
    pub(super) of_namespace: SourceRanking<'a>,
    pub(super) of_cluster: SourceRanking<'a>,
    named: Option<Ranked<'a>>,
}

/// The policy objects of one source without the named one, by priority, age and name.
#[derive(Default)]
pub(super) struct SourceRanking<'a> {
    ranked: Vec<Ranked<'a>>,
    /// The place of the first one that applies to all ports.
    best: Option<usize>,
    /// The place of the first one that limits the owners of all ports.
    limiting: Option<usize>,
    /// The places of those that name a port, in their order, by the port's name.
    by_port: FxHashMap<&'a str, Vec<usize>>,
}

/// The policy objects of one source, for one port.
pub(super) struct PortRanking<'r, 'a> {
    source: &'r SourceRanking<'a>,
    /// The places of those that name the port.
    naming: &'r [usize],
}

impl<'a> Ranking<'a> {
    /// Ranks for the ports with these names, as seen from `own_node`.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        service: &'a Service,
        own_node: Option<&Node>,
        ports: &[&str],
    ) -> Self {
        let nothing = Labels::default();
        let labels = own_node.map_or(&nothing, |node| &node.labels);
        let ranked = |object| Ranked {
            object,
            mismatch: mismatch(object, snapshot, labels),
        };
        let name = service.named_policy.as_ref();
        let named = name.and_then(|name| snapshot.policy(&service.name.namespace, name));
        let is_named = |object| named.is_some_and(|named| std::ptr::eq(named, object));
        let mut ranking = Self {
            named: named.map(ranked),
            ..Self::default()
        };
        for object in snapshot.policies_for(service) {
            if is_named(object) {
                continue;
            }
            let source = match (&object.namespace, object.enforcement) {
                (Some(_), _) => &mut ranking.of_namespace,
                (None, Enforcement::Override) => &mut ranking.overriding,
                (None, Enforcement::Default) => &mut ranking.of_cluster,
            };
            source.ranked.push(ranked(object));
        }
        ranking.overriding.arrange(ports);
        ranking.of_namespace.arrange(ports);
        ranking.of_cluster.arrange(ports);
        ranking
    }

    /// The policy object that the Service's annotation names, if it exists.
    pub(super) const fn named(&self) -> Option<&Ranked<'a>> {
        self.named.as_ref()
    }

    /// The owner limits: those of the best cluster policy that has some, otherwise of the best one in the namespace.
    pub(super) fn limits(&self, port: &str) -> Option<(&'a TopologyPolicy, &'a OwnerLimits)> {
        let sources = [&self.overriding, &self.of_cluster].into_iter();
        let of_cluster = sources.filter_map(|source| source.at(port).limiting());
        let best = of_cluster.min_by_key(|object| rank(object));
        let object = best.or_else(|| self.of_namespace.at(port).limiting())?;
        Some((object, object.owner_limits.as_ref()?))
    }
}

impl<'a> SourceRanking<'a> {
    /// Sorts the policy objects, and prepares the lookup of the ports with these names.
    fn arrange(&mut self, ports: &[&str]) {
        self.ranked
            .sort_unstable_by_key(|ranked| rank(ranked.object));
        let for_all = |ranked: &Ranked<'_>| ranked.object.port_names.is_empty();
        let mut ranked = self.ranked.iter();
        self.best = ranked.position(|ranked| for_all(ranked) && ranked.applies());
        let mut ranked = self.ranked.iter();
        self.limiting = ranked.position(|ranked| for_all(ranked) && ranked.limits());
        if self.ranked.iter().all(for_all) {
            return;
        }
        let known: FxHashSet<&str> = ports.iter().copied().collect();
        for (place, ranked) in self.ranked.iter().enumerate() {
            for name in &ranked.object.port_names {
                if known.contains(&**name) {
                    self.by_port.entry(&**name).or_default().push(place);
                }
            }
        }
    }

    /// The policy objects for the port `name`, which must be one of those that were prepared.
    pub(super) fn at(&self, name: &str) -> PortRanking<'_, 'a> {
        PortRanking {
            source: self,
            naming: self.by_port.get(name).map_or(&[], Vec::as_slice),
        }
    }
}

impl<'a> PortRanking<'_, 'a> {
    /// The number of policy objects.
    pub(super) const fn len(&self) -> usize {
        self.source.ranked.len()
    }

    /// All policy objects, the best first, with the reason why they do not apply.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a TopologyPolicy, Option<LostBecause>)> {
        let ranked = self.source.ranked.iter().enumerate();
        ranked.map(|(place, ranked)| {
            let is_other =
                !ranked.object.port_names.is_empty() && self.naming.binary_search(&place).is_err();
            let mismatch = ranked.mismatch.filter(|_| !is_other);
            (
                ranked.object,
                mismatch.or(is_other.then_some(LostBecause::OtherPort)),
            )
        })
    }

    /// The first one that applies.
    pub(super) fn best(&self) -> Option<&'a TopologyPolicy> {
        self.first(self.source.best, Ranked::applies)
    }

    /// The first one that limits owners.
    fn limiting(&self) -> Option<&'a TopologyPolicy> {
        self.first(self.source.limiting, Ranked::limits)
    }

    /// The first one that names the port and `is` so, or the one `for_all` ports.
    fn first(
        &self,
        for_all: Option<usize>,
        is: fn(&Ranked<'a>) -> bool,
    ) -> Option<&'a TopologyPolicy> {
        let ranked = |place: usize| self.source.ranked.get(place);
        let mut naming = self.naming.iter().copied();
        let naming = naming.find(|place| ranked(*place).is_some_and(is));
        let place = naming.into_iter().chain(for_all).min()?;
        Some(ranked(place)?.object)
    }
}

impl Ranked<'_> {
    /// Whether it applies to the port `name`.
    pub(super) fn applies_to(&self, name: &Arc<str>) -> bool {
        let names = &self.object.port_names;
        self.applies() && (names.is_empty() || names.contains(name))
    }

    /// Whether it applies to the ports that it is for.
    const fn applies(&self) -> bool {
        self.mismatch.is_none()
    }

    /// Whether it limits the owners of the ports that it is for. Limits apply even if the policy's levels do not.
    const fn limits(&self) -> bool {
        matches!(self.mismatch, None | Some(LostBecause::LevelUnknown))
            && self.object.owner_limits.is_some()
    }
}

/// The order of policy objects of one kind.
fn rank(object: &TopologyPolicy) -> (Reverse<i32>, i64, &Arc<str>) {
    let age = object.created.unwrap_or(i64::MAX);
    (Reverse(object.priority), age, &object.name)
}

/// Why the policy object does not apply to any port on a node with these labels.
fn mismatch(object: &TopologyPolicy, snapshot: &Snapshot, own: &Labels) -> Option<LostBecause> {
    if !object.node_selector.matches(own) {
        Some(LostBecause::OtherNode)
    } else if object.namespace.is_none() && refuses_everywhere(&object.policy, snapshot) {
        Some(LostBecause::LevelUnknown)
    } else {
        None
    }
}

/// Whether a hard policy would refuse every client in the cluster: no Node has the label of any of its levels.
fn refuses_everywhere(policy: &Policy, snapshot: &Snapshot) -> bool {
    let exists = |level: &Level| match &level.key {
        LevelKey::Label(key) => snapshot.has_label(key),
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
