//! The recovery hold: a level counts more only after it has had more for long enough.

use std::collections::BTreeMap;

use topology_core::policy::Policy;

use super::levels::Level;
use super::source::Rule;
use super::{Ep, Port, View};

/// The endpoints of a level at a query.
struct Then {
    at: i64,
    usable: usize,
    counted: usize,
}

impl<'a> Port<'a> {
    /// Lets each level count what the hold permits; or everything, if otherwise no endpoint would count.
    pub(super) fn hold(&self, policy: &Policy, levels: &mut [Level<'a>], has: &[usize]) {
        if self.view.now.is_none() || policy.recovery_hold == 0 {
            return;
        }
        let moments = self.moments();
        let counts = has.iter().enumerate().map(|(at, has)| {
            let counted = counted(&moments, at, i64::from(policy.recovery_hold) * 1_000);
            counted.min(*has)
        });
        let counts: Vec<usize> = counts.collect();
        if counts.iter().all(|count| *count == 0) {
            return;
        }
        for ((level, has), count) in levels.iter_mut().zip(has).zip(counts) {
            if !level.merged && level.counted > 0 {
                level.counted -= has - count;
            }
        }
    }

    /// The times of earlier queries and of this one, and the endpoints of each level then; none without a policy. While
    /// this Node was unknown, its levels were.
    fn moments(&self) -> Vec<(i64, Vec<usize>)> {
        let now = self.view.now.map(|now| (now, self.view.cluster));
        let all = self.view.past.iter().copied().chain(now);
        let known = all.filter(|(_, cluster)| cluster.node(self.view.me).is_some());
        let had = known.map(|(at, cluster)| {
            let view = View {
                cluster,
                me: self.view.me,
                now: Some(at),
                new: BTreeMap::new(),
                past: Vec::new(),
            };
            let then = Port {
                view: &view,
                ..*self
            };
            (at, then.has())
        });
        had.collect()
    }

    /// The endpoints of each level, even if levels do not count now; none without a policy. A drain that ramps excludes
    /// nothing yet.
    fn has(&self) -> Vec<usize> {
        let (rule, endpoints) = (self.rule(), self.endpoints());
        let Rule::Policy(policy) = &rule else {
            return Vec::new();
        };
        let (_, fewest) = self.phases(&rule, &endpoints).swap_remove(0);
        let remaining = self.remaining(policy, &endpoints, &fewest);
        let level = |ep: &Ep<'_>| {
            let mut levels = policy.levels.iter();
            levels.position(|level| self.is_near(ep.endpoint, &level.key))
        };
        let in_level = |at| {
            let rest = remaining.rest.iter();
            rest.filter(|ep| level(ep) == Some(at)).count()
        };
        (0..policy.levels.len()).map(in_level).collect()
    }
}

/// The count of the level at `level` at the last of `moments`.
fn counted(moments: &[(i64, Vec<usize>)], level: usize, hold: i64) -> usize {
    let mut past: Vec<Then> = Vec::new();
    for (at, had) in moments {
        let Some(usable) = had.get(level).copied() else {
            past.clear();
            continue;
        };
        let before = past.last().map_or(usable, |then| then.counted);
        // Since when it has had more than its count, without a break.
        let more = past
            .iter()
            .rev()
            .take_while(|then| then.counted == before && then.usable > before);
        let since = more.last().map_or(*at, |then| then.at);
        let counted = if usable <= before {
            usable
        } else if at - since < hold {
            before
        } else {
            let waited = past
                .iter()
                .filter(|then| then.at >= since)
                .map(|then| then.usable);
            waited.chain([usable]).min().unwrap()
        };
        past.push(Then {
            at: *at,
            usable,
            counted,
        });
    }
    past.last().map_or(0, |then| then.counted)
}
