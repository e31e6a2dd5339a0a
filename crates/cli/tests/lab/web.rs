//! A pod on every node that answers with the node's name, behind a Service; the same for all tests.

use std::sync::Mutex;

use crate::cluster::Namespace;

/// Starts them if nobody did, and returns when all are ready.
pub(crate) fn start() -> Namespace {
    // Two that apply the same at the same time would both create it.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap();
    let namespace = Namespace::shared();
    let web = include_str!("web.yaml").replace("VERSION", env!("CARGO_PKG_VERSION"));
    namespace.apply(&web);
    namespace.kubectl(&["rollout", "status", "daemonset/web", "--timeout=180s"]);
    namespace
}

/// Address and port of the Service.
pub(crate) fn address(namespace: &Namespace) -> String {
    let address = ["get", "service", "web", "-o=jsonpath={.spec.clusterIP}"];
    format!("{}:80", namespace.kubectl(&address))
}
