//! Selects the lines about Pods that report an address of another Pod.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::state::AddressConflict;

/// The interval between two looks. A conflict is logged if two looks find it: when an address is used again, the next
/// Pod may report it shortly before the API server knows that the old Pod has ended.
const INTERVAL: Duration = Duration::from_secs(30);

/// The limit of conflicts that one look names: a kubelet may report any number of addresses.
const MOST_NAMED: usize = 10;

#[derive(Debug, Default)]
pub(super) struct ConflictLog {
    next: Duration,
    /// The conflicts of the last look.
    last: BTreeSet<AddressConflict>,
    logged: BTreeSet<AddressConflict>,
}

impl ConflictLog {
    /// Whether to look again; `now` is of a monotonic clock.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + INTERVAL;
        }
        is_due
    }

    /// Returns the lines about conflicts that are new and that the last look found, too.
    pub(super) fn observe(&mut self, present: BTreeSet<AddressConflict>) -> Vec<String> {
        let last = std::mem::replace(&mut self.last, present);
        let lasting: BTreeSet<AddressConflict> = self.last.intersection(&last).cloned().collect();
        let logged = std::mem::replace(&mut self.logged, lasting);
        let new: Vec<&AddressConflict> = self.logged.difference(&logged).collect();
        let named = new.iter().take(MOST_NAMED);
        let mut lines: Vec<String> = named.map(ToString::to_string).collect();
        if new.len() > MOST_NAMED {
            let others = new.len() - MOST_NAMED;
            lines.push(format!(
                "{others} more Pods report an address of another Pod"
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use topology_core::model::ObjectName;

    use super::*;

    fn conflicts(refused: &[usize]) -> BTreeSet<AddressConflict> {
        let pod = |name: String, node: &str| (ObjectName::new("shop", name), node.to_owned());
        let conflict = |number: &usize| AddressConflict {
            address: "10.244.1.7".parse().unwrap(),
            refused: pod(format!("web-{number}"), "n2"),
            holder: pod("cart-0".to_owned(), "n1"),
        };
        refused.iter().map(conflict).collect()
    }

    #[test]
    fn a_conflict_that_lasts_is_logged_once_until_it_ends() {
        let mut log = ConflictLog::default();
        assert_eq!(log.observe(conflicts(&[1])), [""; 0]);
        assert_eq!(
            log.observe(conflicts(&[1, 2])),
            [
                "the Pod shop/web-1 on Node n2 reports the address 10.244.1.7, which the Pod shop/cart-0 on Node n1 \
                 has: it is not in the PodMap of n2"
            ]
        );
        let second = log.observe(conflicts(&[1, 2]));
        assert!(
            matches!(&*second, [line] if line.contains("web-2")),
            "{second:?}"
        );
        assert_eq!(log.observe(conflicts(&[1, 2])), [""; 0]);
        assert_eq!(log.observe(conflicts(&[2])), [""; 0]);
        assert_eq!(log.observe(conflicts(&[1, 2])), [""; 0]);
        assert_eq!(log.observe(conflicts(&[1, 2])).len(), 1, "it came back");
    }

    #[test]
    fn many_conflicts_at_once_are_counted() {
        let mut log = ConflictLog::default();
        let many: Vec<usize> = (0..500).collect();
        log.observe(conflicts(&many));
        let lines = log.observe(conflicts(&many));
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[10], "490 more Pods report an address of another Pod");
    }

    #[test]
    fn a_look_is_due_every_half_minute() {
        let mut log = ConflictLog::default();
        let due = [0, 1, 29, 30, 31, 60].map(|second| log.is_due(Duration::from_secs(second)));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
