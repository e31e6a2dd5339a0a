//! Another proxy on this node: what the machine shows of it, and what it does to our virtual servers.

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
    /// A comparison begins.
    pub(super) fn begin_check(&mut self) {
        self.in_a_row = if self.repaired { self.in_a_row + 1 } else { 0 };
        self.repaired = false;
    }

    /// Replaces what was found on the machine.
    pub(super) fn set_found(&mut self, found: Vec<String>) {
        self.found = found;
    }

    /// The present comparison repaired virtual servers.
    pub(super) fn repaired(&mut self) {
        self.repaired = true;
    }

    /// Warnings, one line each.
    pub(super) fn lines(&self) -> Vec<String> {
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
