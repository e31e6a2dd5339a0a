//! A pod on every node that answers with the node's name, behind a Service.

use crate::cluster::Namespace;

/// Starts them, and returns when all are ready.
pub(crate) fn start(namespace: &Namespace) {
    let web = include_str!("web.yaml").replace("VERSION", env!("CARGO_PKG_VERSION"));
    namespace.apply(&web);
    namespace.kubectl(&["rollout", "status", "daemonset/web", "--timeout=180s"]);
}
