//! S4 to S9: the shares of levels and endpoints.

use std::collections::{BTreeMap, BTreeSet};

use topology_core::model::Drain;
use topology_core::policy::{
    Demand, EmptyTier, LevelKey, Policy, PolicySource, Residual, Weighting,
};

use super::place::Placed;
use super::{Ep, Port, ZONE};
use crate::frac::{Frac, ONE, ZERO, frac, whole};

/// A level on its way through the stages.
pub(super) struct Level<'a> {
    key: LevelKey,
    share: Frac,
    /// Endpoints that get traffic.
    usable: Vec<Ep<'a>>,
    /// The number of them that count.
    pub(super) counted: usize,
    /// These and all others that do not terminate.
    present: usize,
    /// Whether it merged into the next outer one.
    pub(super) merged: bool,
}

impl<'a> Port<'a> {
    pub(crate) fn by_levels(
        &self,
        policy: &'a Policy,
        rest: &[Ep<'a>],
        present: &[Ep<'a>],
        drains: &[&Drain],
    ) -> Placed
    where
        'a: 'a,
    {
        let mut levels = self.levels(policy, rest, present);
        let has: Vec<usize> = levels.iter().map(|level| level.usable.len()).collect();
        self.share_out(policy, &mut levels);
        self.send_clients_away(&mut levels, drains);
        self.hold(policy, &mut levels, &has);
        merge_small(policy, &mut levels);
        let asked: Vec<Frac> = levels.iter().map(|level| level.share).collect();
        empty(policy, &mut levels);
        spill(policy, &mut levels);
        let shed_from = self.cap(policy, &mut levels, rest, &asked);
        self.split(policy, &levels, rest, shed_from)
    }

    /// S4: each endpoint is in the first level that it shares with this node.
    fn levels(&self, policy: &Policy, rest: &[Ep<'a>], present: &[Ep<'a>]) -> Vec<Level<'a>> {
        let first = |ep: &Ep<'_>| {
            policy
                .levels
                .iter()
                .position(|level| self.is_near(ep.endpoint, &level.key))
        };
        let of = |endpoints: &[Ep<'a>], at: usize| -> Vec<Ep<'a>> {
            let inside = endpoints.iter().filter(|ep| first(ep) == Some(at));
            inside.copied().collect()
        };
        (policy.levels.iter().enumerate())
            .map(|(at, level)| Level {
                key: level.key.clone(),
                share: ZERO,
                counted: of(rest, at).len(),
                usable: of(rest, at),
                present: of(present, at).len(),
                merged: false,
            })
            .collect()
    }

    /// By the weights of the levels; with bias by those of the endpoints, unless all of them are 0.
    fn share_out(&self, policy: &Policy, levels: &mut [Level<'a>]) {
        let weights: Vec<Frac> = (policy.levels.iter())
            .map(|level| frac(i128::from(level.weight), 1))
            .collect();
        let biased: Vec<Frac> = (levels.iter().zip(&weights))
            .map(|(level, weight)| {
                *weight
                    * level
                        .usable
                        .iter()
                        .map(|ep| self.capacity(policy, ep))
                        .sum()
            })
            .collect();
        let has_bias = policy.weighting == Weighting::EndpointBias
            && biased.iter().any(|weight| *weight > ZERO);
        let weights = if has_bias { biased } else { weights };
        let sum: Frac = weights.iter().copied().sum();
        if sum == ZERO {
            levels[0].share = ONE;
            return;
        }
        for (level, weight) in levels.iter_mut().zip(weights) {
            level.share = weight / sum;
        }
    }

    /// A drain of clients: the drained domain and all nearer ones are no longer preferred.
    fn send_clients_away(&self, levels: &mut [Level<'a>], drains: &[&Drain]) {
        for drain in drains.iter().filter(|drain| self.moves_me(drain)) {
            // A node is inside every domain that contains it.
            let find = |key: &LevelKey| levels.iter().position(|level| level.key == *key);
            if let Some(at) = find(&drain.key).or_else(|| find(&LevelKey::Node)) {
                for inner in 0..=at {
                    merge(levels, inner);
                }
            }
        }
    }

    /// S8: at most `(1 + overload) u / D` stays inside a level. Returns the innermost level that is capped.
    fn cap(
        &self,
        policy: &Policy,
        levels: &mut [Level<'a>],
        rest: &[Ep<'a>],
        asked: &[Frac],
    ) -> Option<usize> {
        let overload = frac(i128::from(policy.max_overload?) + 100, 100);
        let outermost = levels.iter().rposition(|level| level.counted > 0)?;
        let mut shed_from = None;
        for at in 0..outermost {
            if levels[at].merged {
                continue;
            }
            let demand = self.demand(&policy.demand, &levels[at].key);
            if demand == ZERO || levels[at].key == LevelKey::Any {
                continue;
            }
            let near = rest
                .iter()
                .filter(|ep| {
                    levels[..=at]
                        .iter()
                        .any(|level| level.usable.iter().any(|other| other.id == ep.id))
                })
                .count();
            let cap = overload * (whole(near) / whole(rest.len())) / demand;
            let inside: Frac = levels[..=at].iter().map(|level| level.share).sum();
            let wanted: Frac = asked[..=at].iter().copied().sum();
            if inside.max(wanted) > cap {
                shed_from = shed_from.or(Some(at));
            }
            let mut excess = if inside > cap { inside - cap } else { ZERO };
            let outer = (at + 1..=outermost).find(|outer| levels[*outer].counted > 0);
            levels[outer.unwrap()].share = levels[outer.unwrap()].share + excess;
            for level in levels[..=at].iter_mut().rev() {
                let taken = excess.min(level.share);
                level.share = level.share - taken;
                excess = excess - taken;
            }
        }
        shed_from
    }

    /// The part of the demand that comes from this node's domain of `key`.
    fn demand(&self, demand: &Demand, key: &LevelKey) -> Frac {
        let mine = |node: &&topology_core::model::Node| match key {
            LevelKey::Any => true,
            LevelKey::Node => *node.name == *self.view.me,
            LevelKey::Label(key) => {
                let own = self.own_label(key);
                own.is_some() && node.labels.get(key).map(ToString::to_string) == own
            }
        };
        if let (Demand::Static(zones), LevelKey::Label(label)) = (demand, key)
            && &**label == ZONE
        {
            return self
                .own_label(ZONE)
                .map_or(ZERO, |zone| stated(zones, &zone));
        }
        self.demand_of(demand, mine)
    }

    fn demand_of(
        &self,
        demand: &Demand,
        mine: impl Fn(&&topology_core::model::Node) -> bool,
    ) -> Frac {
        let ready: Vec<_> = self
            .view
            .cluster
            .nodes
            .iter()
            .filter(|node| node.ready)
            .collect();
        let part = |of: &dyn Fn(&topology_core::model::Node) -> i128| {
            let all: i128 = ready.iter().map(|node| of(node)).sum();
            let here: i128 = ready
                .iter()
                .filter(|node| mine(node))
                .map(|node| of(node))
                .sum();
            if all == 0 { ZERO } else { frac(here, all) }
        };
        match demand {
            Demand::NodeCount => part(&|_| 1),
            Demand::AllocatableCpu => part(&|node| i128::from(node.cpu_milli)),
            Demand::Static(zones) => {
                let zone_of = |node: &topology_core::model::Node| {
                    node.labels.get(ZONE).map(ToString::to_string)
                };
                ready
                    .iter()
                    .filter(|node| mine(node))
                    .filter_map(|node| {
                        let zone = zone_of(node)?;
                        let neighbours = ready
                            .iter()
                            .filter(|other| zone_of(other).as_ref() == Some(&zone));
                        Some(stated(zones, &zone) / whole(neighbours.count()))
                    })
                    .sum()
            }
        }
    }

    /// S9: the share of each endpoint.
    fn split(
        &self,
        policy: &Policy,
        levels: &[Level<'a>],
        rest: &[Ep<'a>],
        shed_from: Option<usize>,
    ) -> Placed {
        let mut placed = Placed::default();
        for (at, level) in levels.iter().enumerate() {
            for ep in &level.usable {
                placed.tier.insert(ep.id, at);
            }
            if level.share == ZERO {
                continue;
            }
            let residual =
                policy.residual == Residual::Capacity && shed_from.is_some_and(|from| at > from);
            let spare = if residual {
                self.spare(policy, level, rest)
            } else {
                BTreeMap::new()
            };
            let all: Frac = spare.values().copied().sum();
            if all > ZERO {
                for (zone, spare) in spare {
                    let there: Vec<_> = level
                        .usable
                        .iter()
                        .filter(|ep| self.label_of(ep.endpoint, ZONE) == zone)
                        .copied()
                        .collect();
                    for ep in &there {
                        placed
                            .pool
                            .insert(ep.id, (at, Some(zone.clone().unwrap_or_default())));
                    }
                    if spare > ZERO {
                        self.deal(policy, &there, level.share * spare / all, &mut placed);
                    }
                }
            } else {
                for ep in &level.usable {
                    placed.pool.insert(ep.id, (at, None));
                }
                self.deal(policy, &level.usable, level.share, &mut placed);
            }
        }
        placed
    }

    /// The surplus of each zone of a level over its demand.
    fn spare(
        &self,
        policy: &Policy,
        level: &Level<'a>,
        rest: &[Ep<'a>],
    ) -> BTreeMap<Option<String>, Frac> {
        let zone_of = |ep: &Ep<'_>| self.label_of(ep.endpoint, ZONE);
        let zones: BTreeSet<Option<String>> = level.usable.iter().map(zone_of).collect();
        let of_zone = |zone: Option<String>| {
            let has =
                whole(rest.iter().filter(|ep| zone_of(ep) == zone).count()) / whole(rest.len());
            let needs = match (&policy.demand, &zone) {
                (Demand::Static(zones), Some(zone)) => stated(zones, zone),
                (Demand::Static(_), None) => ZERO,
                (demand, _) => self.demand_of(demand, |node| {
                    let label = node.labels.get(ZONE).map(ToString::to_string);
                    label.filter(|value| !value.is_empty()) == zone
                }),
            };
            let spare = if has > needs { has - needs } else { ZERO };
            (zone, spare)
        };
        zones.into_iter().map(of_zone).collect()
    }

    /// Divides a share by capacity.
    fn deal(&self, policy: &Policy, endpoints: &[Ep<'a>], share: Frac, into: &mut Placed) {
        let all: Frac = endpoints.iter().map(|ep| self.capacity(policy, ep)).sum();
        for ep in endpoints {
            into.share
                .insert(ep.id, share * self.capacity(policy, ep) / all);
            into.capacity.insert(ep.id, self.capacity(policy, ep));
        }
    }

    /// The weight of an endpoint in its group: the capacity of its Node, less while it is new.
    fn capacity(&self, policy: &Policy, ep: &Ep<'_>) -> Frac {
        if policy.source == PolicySource::TopologyKeys {
            return ONE;
        }
        let node = ep
            .endpoint
            .node
            .as_ref()
            .and_then(|name| self.view.cluster.node(name));
        let label = node.and_then(|node| node.labels.get("topology.ipvs-topo.io/capacity"));
        let number = label.and_then(|text| text.parse::<i128>().ok());
        let capacity = frac(
            number
                .filter(|number| (1..=1000).contains(number))
                .unwrap_or(1),
            1,
        );
        let (Some(now), Some(since)) = (self.view.now, self.view.new.get(&ep.id)) else {
            return capacity;
        };
        if policy.slow_start == 0 {
            return capacity;
        }
        let tenths = 1 + 9 * i128::from(now - since) / (i128::from(policy.slow_start) * 1000);
        capacity * frac(tenths.min(10), 10)
    }
}

/// The percentage of a zone over the sum of percentages.
fn stated(zones: &[(std::sync::Arc<str>, u32)], zone: &str) -> Frac {
    let all: u32 = zones.iter().map(|(_, percent)| percent).sum();
    let here: u32 = zones
        .iter()
        .filter(|(name, _)| **name == *zone)
        .map(|(_, percent)| percent)
        .sum();
    if all == 0 {
        ZERO
    } else {
        frac(here.into(), all.into())
    }
}

fn merge(levels: &mut [Level<'_>], at: usize) {
    if at + 1 >= levels.len() || levels[at].merged {
        return;
    }
    let (inner, outer) = levels.split_at_mut(at + 1);
    let (inner, outer) = (&mut inner[at], &mut outer[0]);
    outer.share = outer.share + inner.share;
    outer.usable.append(&mut inner.usable);
    outer.counted += inner.counted;
    outer.present += inner.present;
    (inner.share, inner.counted, inner.present, inner.merged) = (ZERO, 0, 0, true);
}

/// S5: a level with too few endpoints merges into the next outer one; an empty one does not.
fn merge_small(policy: &Policy, levels: &mut [Level<'_>]) {
    for at in 0..levels.len() {
        let (ready, present) = (levels[at].counted, levels[at].present);
        let least = policy.levels[at].min_ready;
        let few = ready < usize::try_from(least.count).unwrap()
            || ready * 100 < present * usize::from(least.percent);
        if ready > 0 && few {
            merge(levels, at);
        }
    }
}

/// S6: the share of empty levels moves.
fn empty(policy: &Policy, levels: &mut [Level<'_>]) {
    let held: Frac = levels
        .iter()
        .filter(|level| level.counted > 0)
        .map(|level| level.share)
        .sum();
    if policy.empty_tier == EmptyTier::Renormalize && held > ZERO {
        for level in levels.iter_mut() {
            level.share = if level.counted == 0 {
                ZERO
            } else {
                level.share / held
            };
        }
        return;
    }
    for at in 0..levels.len() {
        if levels[at].counted > 0 {
            continue;
        }
        let outer = (at + 1..levels.len()).find(|other| levels[*other].counted > 0);
        let inner = (0..at).rev().find(|other| levels[*other].counted > 0);
        if let Some(to) = outer.or(inner) {
            levels[to].share = levels[to].share + levels[at].share;
            levels[at].share = ZERO;
        }
    }
}

/// S7: levels that lost endpoints pass on a part of their share.
fn spill(policy: &Policy, levels: &mut [Level<'_>]) {
    let Some(percent) = policy.overprovision else {
        return;
    };
    let mut carry = ZERO;
    for level in levels.iter_mut() {
        let healthy = if level.present == 0 {
            ZERO
        } else {
            whole(level.counted) / whole(level.present)
        };
        let can = ONE.min(frac(i128::from(percent), 100) * healthy);
        let own = level.share * can;
        let accepted = carry.min(can - own);
        carry = carry + level.share - own - accepted;
        level.share = own + accepted;
    }
    let all: Frac = levels.iter().map(|level| level.share).sum();
    if all > ZERO {
        for level in levels {
            level.share = level.share / all;
        }
    }
}
