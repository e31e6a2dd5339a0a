//! How much may be written: so many writes a minute, whatever the size of the cluster. No clock of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::world::{Collection, Name, Write};

/// The most writes in a minute.
pub const PER_MINUTE: u32 = 60;
/// The least time between two writes of one object that nobody waits for: counts, and the map.
pub const COALESCE: Duration = Duration::from_secs(10);
/// What a failed write waits before it is tried again.
pub const RETRY: Duration = Duration::from_secs(5);

const MINUTE: Duration = Duration::from_secs(60);

/// What was written lately.
#[derive(Debug)]
pub struct Budget {
    /// Writes that may be made now, in units of a minute's share.
    tokens: f64,
    filled: Duration,
    /// When each object may be written again for a change that nobody waits for, and after a failure for any.
    not_before: BTreeMap<(Collection, Name), (Duration, bool)>,
}

impl Budget {
    /// A full budget.
    pub fn new(now: Duration) -> Self {
        Self {
            tokens: f64::from(PER_MINUTE),
            filled: now,
            not_before: BTreeMap::new(),
        }
    }

    /// The writes that may be made at `now`: what somebody waits for first.
    pub fn allow(&mut self, now: Duration, mut writes: Vec<Write>) -> Vec<Write> {
        let passed = now.saturating_sub(self.filled);
        let most = f64::from(PER_MINUTE);
        let filled = self.tokens + most * passed.as_secs_f64() / MINUTE.as_secs_f64();
        (self.tokens, self.filled) = (filled.min(most), now);
        self.not_before.retain(|_, (until, _)| *until > now);
        writes.retain(|write| {
            let held = self.not_before.get(&(write.collection, write.name.clone()));
            held.is_none_or(|(_, failed)| write.is_transition && !failed)
        });
        writes.sort_by_key(|write| !write.is_transition);
        let mut allowed = Vec::new();
        for write in writes {
            if self.tokens < 1.0 {
                break;
            }
            self.tokens -= 1.0;
            allowed.push(write);
        }
        allowed
    }

    /// Takes note of how a write ended.
    pub fn wrote(&mut self, now: Duration, write: &Write, ok: bool) {
        let wait = if ok { COALESCE } else { RETRY };
        let key = (write.collection, write.name.clone());
        self.not_before.insert(key, (now + wait, !ok));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::world::How;

    fn write(number: usize, is_transition: bool) -> Write {
        Write {
            collection: Collection::Policies,
            name: ("shop".to_owned(), number.to_string()),
            how: How::Status,
            body: Value::Null,
            is_transition,
        }
    }

    #[test]
    fn a_minute_has_no_more_writes_than_it_may() {
        let mut budget = Budget::new(Duration::ZERO);
        let mut count = 0;
        for second in 0..180 {
            let now = Duration::from_secs(second);
            let many = (0..500).map(|number| write(number, true)).collect();
            let allowed = budget.allow(now, many);
            for one in &allowed {
                budget.wrote(now, one, true);
            }
            count += allowed.len();
        }
        let most = usize::try_from(PER_MINUTE).unwrap();
        assert!(count <= most * 4 && count >= most * 3, "{count}");
    }

    #[test]
    fn what_somebody_waits_for_comes_first_and_at_once() {
        let mut budget = Budget::new(Duration::ZERO);
        let mixed = vec![write(1, false), write(2, true)];
        let allowed = budget.allow(Duration::ZERO, mixed);
        assert!(allowed[0].is_transition);
        for one in &allowed {
            budget.wrote(Duration::ZERO, one, true);
        }
        let now = Duration::from_secs(1);
        assert_eq!(budget.allow(now, vec![write(1, false)]), []);
        assert_eq!(budget.allow(now, vec![write(1, true)]).len(), 1);
        assert_eq!(budget.allow(COALESCE, vec![write(1, false)]).len(), 1);
    }

    #[test]
    fn a_write_that_failed_waits_whoever_waits_for_it() {
        let mut budget = Budget::new(Duration::ZERO);
        budget.wrote(Duration::ZERO, &write(1, true), false);
        assert_eq!(
            budget.allow(Duration::from_secs(1), vec![write(1, true)]),
            []
        );
        assert_eq!(budget.allow(RETRY, vec![write(1, true)]).len(), 1);
    }
}
