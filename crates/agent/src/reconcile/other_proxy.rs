//! Detects another proxy on this node, by its traces and by repeated repairs of our virtual servers.

/// Number of consecutive comparisons with repairs that indicates another proxy.
const OFTEN: u32 = 3;

/// The evidence of another proxy.
#[derive(Debug, Default)]
pub(super) struct OtherProxy {
    /// The traces on the node.
    found: Vec<String>,
    /// Whether the running comparison repaired virtual servers.
    repaired: bool,
    /// Number of consecutive comparisons before it with repairs.
    in_a_row: u32,
}

impl OtherProxy {
    /// Starts a comparison.
    pub(super) fn begin_check(&mut self) {
        self.in_a_row = if self.repaired { self.in_a_row + 1 } else { 0 };
        self.repaired = false;
    }

    /// Replaces the traces.
    pub(super) fn set_found(&mut self, found: Vec<String>) {
        self.found = found;
    }

    /// Records that the running comparison repaired virtual servers.
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
