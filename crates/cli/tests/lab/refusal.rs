//! A kernel without a Service's scheduler: the node's report says so until the module exists.

use crate::cluster::{Namespace, kubectl, on_node, wait_for};

/// A scheduler that only this test uses.
const SCHEDULER: &str = "sed";

/// A node whose kernel lacks that scheduler's module.
pub(crate) struct Refusal {
    node: &'static str,
    module: String,
}

impl Refusal {
    /// Hides the module on `node`, and creates a Service with that scheduler.
    pub(crate) fn begin(node: &'static str) -> Self {
        let find = format!("find /lib/modules/$(uname -r) -name 'ip_vs_{SCHEDULER}.ko'");
        let refusal = Self {
            node,
            module: on_node(node, &find).trim().to_owned(),
        };
        refusal.rename("", ".away");
        let namespace = Namespace::new();
        namespace.kubectl(&["create", "service", "clusterip", "refused", "--tcp=80"]);
        let scheduler = format!("topology.ipvs-topo.io/scheduler={SCHEDULER}");
        let mode = "topology.ipvs-topo.io/mode=none";
        namespace.kubectl(&["annotate", "service", "refused", &scheduler, mode]);
        refusal
    }

    /// Waits for the report, restores the module, and waits until the report is cleared.
    pub(crate) fn end(&self) {
        wait_for_report(self.node, "Serving SchedulerMissing");
        wait_for_report("n2", "Serving ");
        self.rename(".away", "");
        wait_for_report(self.node, "Serving ");
    }

    fn rename(&self, from: &str, to: &str) {
        let Self { node, module } = self;
        on_node(node, &format!("mv {module}{from} {module}{to}"));
    }
}

/// Waits until the agent's report of `node` has this phase and these reasons of fallbacks.
fn wait_for_report(node: &str, wanted: &str) {
    let fields = "-o=jsonpath={.status.phase} {.status.fallbacks[*].reason}";
    let reported = || kubectl(&["get", "topologyagent", node, fields]);
    wait_for("the node does not report its kernel's state", || {
        (reported() == wanted).then_some(())
    });
}
