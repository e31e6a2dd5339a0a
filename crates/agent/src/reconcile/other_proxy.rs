//! Another proxy on this node: what the machine shows of it, and what it does to our virtual servers.

use dataplane::host::Host;
use dataplane::ipvs::Kernel;

use super::Reconciler;
use crate::node_warning::Topic;

/// Comparisons in a row that had to repair virtual servers before that is a pattern and no accident.
const OFTEN: u32 = 3;

/// What is known of another proxy.
#[derive(Debug, Default)]
pub(super) struct OtherProxy {
    /// What was found on the machine.
    found: Vec<String>,
    /// Whether the present comparison repaired virtual servers.
    repaired: bool,
    /// How many comparisons before it did, without one in between that did not.
    in_a_row: u32,
}

impl OtherProxy {
    fn begin_check(&mut self) {
        self.in_a_row = if self.repaired { self.in_a_row + 1 } else { 0 };
        self.repaired = false;
    }

    fn lines(&self) -> Vec<String> {
        let repairs = (self.in_a_row >= OFTEN).then(|| {
            format!(
                "another program changed our virtual servers before each of the last {} comparisons, which repaired \
                 them; find it (a kube-proxy, `ipvsadm` in a script, keepalived) and stop it",
                self.in_a_row
            )
        });
        self.found.iter().cloned().chain(repairs).collect()
    }
}

impl<K: Kernel, H: Host> Reconciler<K, H> {
    /// Takes in what was found of another proxy since the last turn.
    pub(super) fn see_other_proxy(&mut self) {
        if let Some(found) = self.host.other_proxy() {
            self.other_proxy.found = found;
            self.warn_of_other_proxy();
        }
    }

    /// A comparison begins: judges what the last ones had to repair.
    pub(super) fn count_repairs(&mut self) {
        self.other_proxy.begin_check();
        self.warn_of_other_proxy();
    }

    /// The present comparison repaired virtual servers.
    pub(super) fn note_repair(&mut self) {
        self.other_proxy.repaired = true;
    }

    fn warn_of_other_proxy(&mut self) {
        self.warnings
            .set(Topic::OtherProxy, self.other_proxy.lines());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(repairs: &[bool]) -> Vec<String> {
        let mut other = OtherProxy::default();
        for &repaired in repairs {
            other.begin_check();
            other.repaired = repaired;
        }
        other.begin_check();
        other.lines()
    }

    #[test]
    fn w_31_repairs_in_three_comparisons_in_a_row_are_a_warning() {
        assert!(after(&[true, true, false, true, true]).is_empty());
        let lines = after(&[false, true, true, true]);
        assert!(
            lines[0].contains("each of the last 3 comparisons"),
            "{lines:?}"
        );
        assert!(after(&[true, true, true, true, false]).is_empty());
    }
}
