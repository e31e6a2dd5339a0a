//! A Service with a pod on every node that returns the node's name; shared by all tests.

use std::sync::Mutex;

use crate::cluster::Namespace;

/// Starts the pods if they do not run yet, and waits until all are ready.
pub(crate) fn start() -> Namespace {
    // Two tests that apply the same objects at the same time would both create them.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap();
    let namespace = Namespace::shared();
    let web = include_str!("web.yaml").replace("VERSION", env!("CARGO_PKG_VERSION"));
    namespace.apply(&web);
    namespace.kubectl(&["rollout", "status", "daemonset/web", "--timeout=180s"]);
    namespace
}

pub(crate) fn address(namespace: &Namespace) -> String {
    let address = ["get", "service", "web", "-o=jsonpath={.spec.clusterIP}"];
    format!("{}:80", namespace.kubectl(&address))
}
