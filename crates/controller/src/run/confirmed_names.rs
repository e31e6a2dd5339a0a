//! Requires a second list before more than half of the Nodes are removed.
//!
//! An API server with an empty etcd, or of another cluster, sends a complete and empty list.
//! Without a second list the map, and agents with `--node-source map`, would lose every Node.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use topology_core::model::ObjectName;

/// The time before a doubtful list is confirmed, as in agents.
pub(super) const CONFIRM: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct ConfirmedNames {
    /// The names of the last list that was believed, with the changes since.
    known: BTreeSet<ObjectName>,
    was_listed: bool,
    confirm: Duration,
    doubt: Option<Doubt>,
    /// When to list again to confirm the doubtful list.
    list_again: Option<Instant>,
}

/// A list in which more than half of the known names are missing.
#[derive(Debug)]
struct Doubt {
    listed: BTreeSet<ObjectName>,
    /// When a list that lacks the same names confirms it.
    until: Instant,
}

impl ConfirmedNames {
    pub(super) const fn new(confirm: Duration) -> Self {
        Self {
            known: BTreeSet::new(),
            was_listed: false,
            confirm,
            doubt: None,
            list_again: None,
        }
    }

    pub(super) fn applied(&mut self, name: ObjectName) {
        self.known.insert(name);
    }

    pub(super) fn deleted(&mut self, name: &ObjectName) {
        self.known.remove(name);
    }

    /// Returns the names of a complete list; until a doubtful list is confirmed, the known names in addition.
    pub(super) fn listed(
        &mut self,
        listed: BTreeSet<ObjectName>,
        now: Instant,
    ) -> BTreeSet<ObjectName> {
        let again = std::mem::replace(&mut self.was_listed, true);
        if !again || !lacks_most(&listed, &self.known) || self.confirms(&listed, now) {
            (self.doubt, self.list_again) = (None, None);
            self.known.clone_from(&listed);
            return listed;
        }
        let until = now + self.confirm;
        let doubt = self.doubt.get_or_insert_with(|| {
            let known = self.known.len();
            tracing::warn!(
                listed = listed.len(),
                known,
                "a new list of Nodes lacks more than half of them; they stay in the TopologyMap until a second list, a \
                 minute later, lacks them too"
            );
            Doubt { listed: listed.clone(), until }
        });
        self.list_again = Some(doubt.until);
        self.known.union(&listed).cloned().collect()
    }

    /// Whether the list ends the doubt. If it lacks most names of the first doubtful list, only names that both lack are
    /// forgotten, and the doubt begins again.
    fn confirms(&mut self, listed: &BTreeSet<ObjectName>, now: Instant) -> bool {
        let Some(doubt) = self.doubt.take_if(|doubt| now >= doubt.until) else {
            return false;
        };
        let first = doubt.listed;
        self.known
            .retain(|name| first.contains(name) || listed.contains(name));
        !lacks_most(listed, &first)
    }

    pub(super) const fn list_again(&self) -> Option<Instant> {
        self.list_again
    }

    pub(super) const fn begins_again(&mut self) {
        self.list_again = None;
    }
}

fn lacks_most(listed: &BTreeSet<ObjectName>, known: &BTreeSet<ObjectName>) -> bool {
    known.difference(listed).count() * 2 > known.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<ObjectName> {
        let name = |name: &&str| ObjectName::new("", *name);
        names.iter().map(name).collect()
    }

    #[test]
    fn an_empty_list_of_nodes_is_used_when_a_second_list_a_minute_later_is_empty_too() {
        let (start, mut nodes) = (Instant::now(), ConfirmedNames::new(CONFIRM));
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let all = names(&["n1", "n2", "n3"]);
        assert_eq!(nodes.listed(all.clone(), at(0)), all);
        // Half of the Nodes may be missing in a list, and a watch may delete any Node.
        nodes.deleted(&ObjectName::new("", "n3"));
        assert_eq!(nodes.listed(names(&["n1"]), at(1)), names(&["n1"]));
        nodes.applied(ObjectName::new("", "n4"));
        for second in [2, 61] {
            assert_eq!(nodes.listed(names(&[]), at(second)), names(&["n1", "n4"]));
            assert_eq!(nodes.list_again(), Some(at(62)));
        }
        assert_eq!(nodes.listed(names(&[]), at(62)), names(&[]));
        assert_eq!(nodes.list_again(), None);
    }

    #[test]
    fn a_list_that_has_the_nodes_again_resets_the_confirmation() {
        let (start, mut nodes) = (Instant::now(), ConfirmedNames::new(CONFIRM));
        let all = names(&["n1", "n2", "n3"]);
        nodes.listed(all.clone(), start);
        nodes.listed(names(&[]), start);
        assert_eq!(nodes.listed(all.clone(), start), all);
        let later = start + CONFIRM * 2;
        assert_eq!(
            nodes.listed(names(&[]), later),
            all,
            "the time starts again"
        );
    }

    #[test]
    fn a_second_list_that_lacks_the_nodes_of_the_first_does_not_confirm_it() {
        let (start, mut nodes) = (Instant::now(), ConfirmedNames::new(CONFIRM));
        nodes.listed(names(&["n1", "n2", "n3", "n4", "n5"]), start);
        let first = nodes.listed(names(&["n1", "m1"]), start);
        assert_eq!(first, names(&["m1", "n1", "n2", "n3", "n4", "n5"]));
        let second = nodes.listed(names(&["n2"]), start + CONFIRM);
        assert_eq!(second, names(&["n1", "n2"]), "both lack the others");
        assert_eq!(nodes.list_again(), Some(start + CONFIRM * 2));
        let third = nodes.listed(names(&["n2"]), start + CONFIRM * 2);
        assert_eq!(third, names(&["n2"]));
    }

    #[test]
    fn the_first_list_needs_no_confirmation() {
        let mut nodes = ConfirmedNames::new(CONFIRM);
        nodes.applied(ObjectName::new("", "n1"));
        let none = names(&[]);
        assert_eq!(nodes.listed(none.clone(), Instant::now()), none);
    }
}
