//! A kernel without the scheduler of a Service: its node's report says so, and no longer once the module is there.

use crate::cluster::{Namespace, kubectl, on_node, wait_for};

/// A scheduler that nobody else here asks for.
const SCHEDULER: &str = "sed";

/// A node whose kernel does not find that scheduler.
pub(crate) struct Refusal {
    node: &'static str,
    module: String,
}

impl Refusal {
    /// Makes a Service whose scheduler the kernel of `node` does not have.
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

    /// Waits until the node has reported it, mends the kernel, and waits until that is reported.
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

/// Waits until a node's agent has reported its phase, and why Services get something else than asked, so.
fn wait_for_report(node: &str, wanted: &str) {
    let told = "-o=jsonpath={.status.phase} {.status.fallbacks[*].reason}";
    let reported = || kubectl(&["get", "topologyagent", node, told]);
    wait_for("no node reports what its kernel does", || {
        (reported() == wanted).then_some(())
    });
}
