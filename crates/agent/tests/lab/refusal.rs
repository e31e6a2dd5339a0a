//! A kernel that refuses a Service: its node's report says so, and no longer once it accepts it.

use crate::cluster::{Namespace, kubectl, on_node, wait_for};

/// A scheduler that nobody else here asks for.
const SCHEDULER: &str = "sed";

/// A node whose kernel does not find that scheduler.
pub(crate) struct Refusal {
    node: &'static str,
    module: String,
}

impl Refusal {
    /// Makes a Service that the kernel of `node` refuses.
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
        self.wait_for_report("Degraded 1");
        assert_eq!(report("n2"), "Serving 0");
        self.rename(".away", "");
        self.wait_for_report("Serving 0");
    }

    fn wait_for_report(&self, wanted: &str) {
        let is_there = || (report(self.node) == wanted).then_some(());
        wait_for("no node reports what its kernel refuses", is_there);
    }

    fn rename(&self, from: &str, to: &str) {
        let Self { node, module } = self;
        on_node(node, &format!("mv {module}{from} {module}{to}"));
    }
}

/// The phase of a node's agent, and how many virtual servers its kernel refuses.
fn report(node: &str) -> String {
    let told = "-o=jsonpath={.status.phase} {.status.counts.failed}";
    kubectl(&["get", "topologyagent", node, told])
}
