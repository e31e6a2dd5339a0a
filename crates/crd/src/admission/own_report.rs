//! Lets each agent write the `TopologyAgent` of its own Node only.

use super::policy::{Check, Policy};
use crate::group::{GROUP, VERSION};

/// The claim with the Node of the Pod, in a token that is bound to a Pod.
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";
/// The agents' service account, in any namespace.
const ACCOUNT: &str = "ipvs-topo-agent";

pub(super) fn policy() -> Policy {
    let is_agent = format!(
        "request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':{ACCOUNT}')"
    );
    let own = format!(
        "has(request.userInfo.extra) && '{NODE_OF_TOKEN}' in request.userInfo.extra && request.userInfo.extra['{NODE_OF_TOKEN}'] == [object.metadata.name]"
    );
    Policy {
        name: "ipvs-topo-own-report",
        group: GROUP,
        version: VERSION,
        resources: &["topologyagents", "topologyagents/status"],
        only_if: vec![("an-agent-writes", is_agent)],
        variables: Vec::new(),
        checks: vec![Check::new(
            own,
            "an agent writes the TopologyAgent of its own Node only, with the token of its Pod; run it as a Pod of the DaemonSet, or write as another user",
        )],
    }
}
