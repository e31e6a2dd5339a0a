//! The recovery hold: a level counts more only after it has had more for long enough.

use std::collections::BTreeMap;

use topology_core::policy::Policy;

use super::levels::Level;
use super::{Port, View};

/// The endpoints of a level at a query.
struct Then {
    at: i64,
    usable: usize,
    counted: usize,
}

impl<'a> Port<'a> {
    /// Lets each level count what the hold permits; or everything, if otherwise no endpoint would count.
    pub(super) fn hold(&self, policy: &Policy, levels: &mut [Level<'a>], had: &[usize]) {
        let Some(now) = self.view.now.filter(|_| policy.recovery_hold > 0) else {
            return;
        };
        let mut moments = self.moments();
        moments.push((now, had.to_vec()));
        let counts = |at| counted(&moments, at, i64::from(policy.recovery_hold) * 1_000);
        let counts: Vec<usize> = (0..levels.len()).map(counts).collect();
        if counts.iter().all(|count| *count == 0) {
            return;
        }
        for ((level, had), count) in levels.iter_mut().zip(had).zip(counts) {
            if !level.merged && level.counted > 0 {
                level.counted -= had - count.min(*had);
            }
        }
    }

    /// The times of earlier queries, and the endpoints of each level then; `None` if levels were not used.
    fn moments(&self) -> Vec<(i64, Vec<usize>)> {
        let past = self.view.past.iter().map(|(at, cluster)| {
            let view = View {
                cluster,
                me: self.view.me,
                now: Some(*at),
                new: BTreeMap::new(),
                past: Vec::new(),
            };
            let then = Port {
                view: &view,
                ..*self
            };
            let (rule, endpoints) = (then.rule(), then.endpoints());
            let (_, drains) = then.phases(&rule, &endpoints).pop().unwrap();
            (*at, then.place(&rule, &endpoints, &drains).had)
        });
        past.collect()
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
