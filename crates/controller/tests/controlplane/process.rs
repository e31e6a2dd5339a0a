//! Controllers as processes, with the account and the rules of `manifests/base`.

use std::process::{Child, Command, Stdio};

use crate::audit::NAMESPACE;
use crate::kubectl::{eventually, kubectl};

/// The account that `manifests/base` makes.
pub(crate) const ACCOUNT: &str = "ipvs-topo-controller";

/// What the leader holds.
pub(crate) const LEASE: &str = "ipvs-topo-controller";

/// The field of an object, once it is this.
pub(crate) fn becomes(kind: &str, name: &str, path: &str, wanted: &str) {
    let output = format!("-o=jsonpath={path}");
    eventually(&format!("{kind} {name} {path} = {wanted}"), || {
        let found = kubectl(&["get", kind, name, &output]).ok()?;
        (found == wanted).then_some(())
    });
}

/// A drain of the rack `b1` that ends in so many hours.
pub(crate) fn drain(name: &str, hours: i64) -> String {
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
    format!(
        "apiVersion: topology.ipvs-topo.io/v1alpha1\nkind: TopologyDrain\nmetadata: {{name: {name}}}\nspec: {{match: {{key: example.com/rack, values: [b1]}}, expiresAt: \"{expires}\"}}\n"
    )
}

/// A controller; killed when it goes.
pub(crate) struct Controller {
    name: String,
    child: Child,
}

impl Controller {
    /// Starts one.
    pub(crate) fn start(kubeconfig: &str, name: &str) -> Self {
        Self::with(kubeconfig, name, &[])
    }

    /// Starts one with more flags.
    pub(crate) fn with(kubeconfig: &str, name: &str, more: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ipvs-topo-controller"))
            .args(["--kubeconfig", kubeconfig, "--namespace", NAMESPACE])
            .args(["--name", name, "--bind-address", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            name: name.to_owned(),
            child,
        }
    }

    /// Whether it holds the lease.
    pub(crate) fn leads(&self) -> bool {
        holder().is_some_and(|holder| holder.starts_with(&format!("{}_", self.name)))
    }

    /// Asks it to end, and returns whether it ended well.
    pub(crate) fn end(mut self) -> bool {
        let id = self.child.id().to_string();
        Command::new("kill").arg(id).status().unwrap();
        let ended = eventually("the end of a controller", || self.child.try_wait().unwrap());
        ended.success()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Who holds the lease.
pub(crate) fn holder() -> Option<String> {
    let path = "-o=jsonpath={.spec.holderIdentity}";
    kubectl(&["get", "lease", LEASE, "-n", NAMESPACE, path]).ok()
}
