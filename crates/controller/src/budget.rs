//! Limits the writes per minute, independent of the size of the cluster. No clock.
//!
//! There are three budgets. The map and the drains have their own, because agents depend on the map
//! and operators need drains during an outage. All other writes share the third: the namespace with
//! the lowest use comes next, so that a tenant with many edits does not delay others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use topology_core::model::ObjectName;

use crate::state::{Collection, Wait, Write};

pub const PER_MINUTE: u32 = MAP + DRAINS + COMMON;
const MAP: u32 = 15;
const DRAINS: u32 = 10;
/// Shared between namespaces.
const COMMON: u32 = 35;
/// Time between two writes of one object if no condition changes (counts, and the map).
pub const COALESCE: Duration = Duration::from_secs(10);
pub const RETRY: Duration = Duration::from_secs(5);

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Budget {
    filled: Duration,
    map: TokenBucket,
    drains: TokenBucket,
    common: TokenBucket,
    /// The use of the shared budget by each owner; it halves every minute.
    used: BTreeMap<Owner, f64>,
    /// When each object may be written again, and whether its last write failed. After a success
    /// only writes without a transition wait; after a failure all writes wait.
    not_before: BTreeMap<(Collection, ObjectName), (Duration, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Cluster(Collection),
    Namespace(Arc<str>),
}

#[derive(Debug)]
struct TokenBucket {
    tokens: f64,
    most: f64,
}

impl TokenBucket {
    fn full(most: u32) -> Self {
        Self {
            tokens: f64::from(most),
            most: f64::from(most),
        }
    }

    fn fill(&mut self, minutes: f64) {
        self.tokens = (self.tokens + self.most * minutes).min(self.most);
    }

    fn take(&mut self) -> bool {
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }
}

impl Owner {
    fn of(write: &Write) -> Self {
        let namespace = &write.name.namespace;
        if namespace.is_empty() {
            Self::Cluster(write.collection)
        } else {
            Self::Namespace(Arc::clone(namespace))
        }
    }
}

impl Budget {
    pub fn new(now: Duration) -> Self {
        Self {
            filled: now,
            map: TokenBucket::full(MAP),
            drains: TokenBucket::full(DRAINS),
            common: TokenBucket::full(COMMON),
            used: BTreeMap::new(),
            not_before: BTreeMap::new(),
        }
    }

    /// Returns the allowed writes in this order: the map, drains, then the namespaces in turn.
    pub fn allow(&mut self, now: Duration, mut writes: Vec<Write>) -> Vec<Write> {
        self.fill(now);
        writes.retain(|write| {
            let held = self.not_before.get(&(write.collection, write.name.clone()));
            held.is_none_or(|(_, failed)| write.is_transition && !failed)
        });
        writes.sort_by_key(|write| !write.is_transition);
        let (mut allowed, mut others) = (Vec::new(), Vec::new());
        for write in writes {
            let bucket = match write.collection {
                Collection::Maps => Some(&mut self.map),
                Collection::Drains => Some(&mut self.drains),
                Collection::Nodes
                | Collection::ClusterPolicies
                | Collection::Policies
                | Collection::Agents
                | Collection::Services
                | Collection::Slices
                | Collection::Pods
                | Collection::PodMaps
                | Collection::PodLocators => None,
            };
            if bucket.is_some_and(TokenBucket::take) {
                allowed.push(write);
            } else {
                others.push(write);
            }
        }
        allowed.sort_by_key(|write| write.collection != Collection::Maps);
        self.deal(others, &mut allowed);
        allowed
    }

    /// Refills the budgets and reduces the recorded use.
    fn fill(&mut self, now: Duration) {
        let minutes = now.saturating_sub(self.filled).as_secs_f64() / MINUTE.as_secs_f64();
        self.filled = now;
        for bucket in [&mut self.map, &mut self.drains, &mut self.common] {
            bucket.fill(minutes);
        }
        let kept = 0.5_f64.powf(minutes);
        self.used.retain(|_, used| {
            *used *= kept;
            *used > 0.01
        });
        self.forget_old(now);
    }

    /// Shares the common budget: the owner with the lowest use comes next; among equal owners, one
    /// with a transition.
    fn deal(&mut self, writes: Vec<Write>, allowed: &mut Vec<Write>) {
        let mut queues: BTreeMap<Owner, VecDeque<Write>> = BTreeMap::new();
        for write in writes {
            let queue = queues.entry(Owner::of(&write)).or_default();
            queue.push_back(write);
        }
        while let Some(owner) = self.next(&queues) {
            let Some(write) = queues.get_mut(&owner).and_then(VecDeque::pop_front) else {
                return;
            };
            if !self.common.take() {
                return;
            }
            *self.used.entry(owner).or_default() += 1.0;
            allowed.push(write);
        }
    }

    fn next(&self, queues: &BTreeMap<Owner, VecDeque<Write>>) -> Option<Owner> {
        let waiting = queues.iter().filter_map(|(owner, queue)| {
            let used = self.used.get(owner).copied().unwrap_or_default();
            Some((owner, used, !queue.front()?.is_transition))
        });
        let next = waiting.min_by(|(_, used, counts), (_, other_used, other_counts)| {
            used.total_cmp(other_used).then(counts.cmp(other_counts))
        });
        next.map(|(owner, ..)| owner.clone())
    }

    /// Whether an object must wait, because it was written recently.
    pub fn must_wait(&self, now: Duration, collection: Collection, name: &ObjectName) -> Wait {
        match self.not_before.get(&(collection, name.clone())) {
            Some((until, failed)) if *until > now && *failed => Wait::AfterFailure,
            Some((until, _)) if *until > now => Wait::ForChanges,
            _ => Wait::No,
        }
    }

    /// Lets an object wait as after a failed write.
    pub fn hold(&mut self, now: Duration, collection: Collection, name: ObjectName) {
        self.not_before
            .insert((collection, name), (now + RETRY, true));
    }

    /// Forgets writes that are no longer recent.
    pub fn forget_old(&mut self, now: Duration) {
        self.not_before.retain(|_, (until, _)| *until > now);
    }

    pub fn record_write(&mut self, now: Duration, write: &Write, ok: bool) {
        let wait = if ok { COALESCE } else { RETRY };
        let key = (write.collection, write.name.clone());
        self.not_before.insert(key, (now + wait, !ok));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::state::WriteKind;

    fn write_of(
        collection: Collection,
        namespace: &str,
        number: usize,
        is_transition: bool,
    ) -> Write {
        Write {
            collection,
            name: ObjectName::new(namespace, number.to_string()),
            kind: WriteKind::Status,
            body: Value::Null,
            is_transition,
        }
    }

    fn write(number: usize, is_transition: bool) -> Write {
        write_of(Collection::Policies, "shop", number, is_transition)
    }

    /// Returns the writes of so many seconds, with `planned` pending in each second.
    fn written(seconds: u64, planned: impl Fn() -> Vec<Write>) -> Vec<(u64, Write)> {
        let mut budget = Budget::new(Duration::ZERO);
        let mut all = Vec::new();
        for second in 0..seconds {
            let now = Duration::from_secs(second);
            for write in budget.allow(now, planned()) {
                budget.record_write(now, &write, true);
                all.push((second, write));
            }
        }
        all
    }

    #[test]
    fn the_writes_per_minute_are_limited() {
        let many = || {
            let policies = (0..500).map(|number| write(number, true));
            let maps = (0..500).map(|number| write_of(Collection::Maps, "", number, true));
            let drains = (0..500).map(|number| write_of(Collection::Drains, "", number, true));
            policies.chain(maps).chain(drains).collect()
        };
        let count = written(180, many).len();
        let most = usize::try_from(PER_MINUTE).unwrap();
        assert!(count <= most * 4 && count >= most * 3, "{count}");
    }

    /// Review M6: changes of Nodes in the map waited for the conditions of all policies.
    #[test]
    fn endless_policy_changes_do_not_delay_the_map_or_drains() {
        let storm = || {
            let mut all: Vec<Write> = (0..500).map(|number| write(number, true)).collect();
            all.push(write_of(Collection::Maps, "", 0, false));
            all.push(write_of(Collection::Drains, "", 0, true));
            all
        };
        let written = written(600, storm);
        for collection in [Collection::Maps, Collection::Drains] {
            let of = written
                .iter()
                .filter(|(_, write)| write.collection == collection);
            let seconds: Vec<u64> = of.map(|(second, _)| *second).collect();
            assert_eq!(seconds[0], 0);
            let longest = seconds.windows(2).map(|two| two[1] - two[0]).max();
            assert!(longest.unwrap() <= COALESCE.as_secs(), "{seconds:?}");
        }
    }

    #[test]
    fn a_namespace_with_endless_writes_does_not_delay_the_others() {
        let storm = || {
            let many = |namespace: &'static str| {
                let all = 0..500;
                all.map(move |number| write_of(Collection::Policies, namespace, number, true))
            };
            let mut all: Vec<Write> = many("aaa").chain(many("zzz")).collect();
            all.push(write_of(Collection::Policies, "shop", 1, false));
            all.push(write_of(Collection::ClusterPolicies, "", 1, true));
            all
        };
        let written = written(600, storm);
        let count = |namespace: &str| {
            let of = written
                .iter()
                .filter(|(_, write)| &*write.name.namespace == namespace);
            of.count()
        };
        assert!(count("aaa").abs_diff(count("zzz")) <= 2, "{}", count("aaa"));
        // A count is written every ten seconds.
        assert!(count("shop") >= 55, "{}", count("shop"));
        assert!(count("") >= 55, "{}", count(""));
    }

    #[test]
    fn transitions_are_written_first_and_at_once() {
        let mut budget = Budget::new(Duration::ZERO);
        let mixed = vec![write(1, false), write(2, true)];
        let allowed = budget.allow(Duration::ZERO, mixed);
        assert!(allowed[0].is_transition);
        for write in &allowed {
            budget.record_write(Duration::ZERO, write, true);
        }
        let now = Duration::from_secs(1);
        assert_eq!(budget.allow(now, vec![write(1, false)]), []);
        assert_eq!(budget.allow(now, vec![write(1, true)]).len(), 1);
        assert_eq!(budget.allow(COALESCE, vec![write(1, false)]).len(), 1);
    }

    #[test]
    fn a_failed_write_waits_even_with_a_transition() {
        let mut budget = Budget::new(Duration::ZERO);
        budget.record_write(Duration::ZERO, &write(1, true), false);
        assert_eq!(
            budget.allow(Duration::from_secs(1), vec![write(1, true)]),
            []
        );
        assert_eq!(budget.allow(RETRY, vec![write(1, true)]).len(), 1);
    }

    #[test]
    fn an_object_that_is_held_waits_and_others_do_not() {
        let mut budget = Budget::new(Duration::ZERO);
        let held = write(1, true);
        budget.hold(Duration::ZERO, held.collection, held.name.clone());
        let waits = |after: u64, write: &Write| {
            budget.must_wait(Duration::from_secs(after), write.collection, &write.name)
        };
        assert_eq!(waits(1, &held), Wait::AfterFailure);
        assert_eq!(waits(RETRY.as_secs(), &held), Wait::No);
        assert_eq!(waits(1, &write(2, true)), Wait::No);
    }
}
