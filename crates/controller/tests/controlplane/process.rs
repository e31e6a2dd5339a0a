//! Controllers as processes, with the account and the rules of `manifests/base`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::kubectl::{eventually, kubectl, ok, repository, variable};

/// Where `manifests/base` has it.
pub(crate) const NAMESPACE: &str = "ipvs-topo-system";

/// Applies `manifests/base`, and writes a kubeconfig that is the controller's account and nobody else.
pub(crate) fn account(folder: &Path) -> String {
    ok(&["apply", "-k", &repository("manifests/base")]);
    ok(&["wait", "--for=condition=Established", "crd", "--all"]);
    let create = ["create", "token", "ipvs-topo-controller", "-n", NAMESPACE];
    let token = ok(&create);
    let server = ok(&[
        "config",
        "view",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    ]);
    let authority = format!("{}/ca.crt", variable("CONTROLPLANE_FOLDER"));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\nclusters: [{{name: it, cluster: {{server: '{server}', certificate-authority: '{authority}'}}}}]\nusers: [{{name: it, user: {{token: {}}}}}]\n",
        token.trim()
    );
    let path = folder.join("controller.kubeconfig");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A controller; killed when it goes.
pub(crate) struct Controller {
    name: String,
    child: Child,
}

impl Controller {
    /// Starts one.
    pub(crate) fn start(kubeconfig: &str, name: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ipvs-topo-controller"))
            .args(["--kubeconfig", kubeconfig, "--namespace", NAMESPACE])
            .args(["--name", name, "--bind-address", "127.0.0.1:0"])
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
    kubectl(&[
        "get",
        "lease",
        "ipvs-topo-controller",
        "-n",
        NAMESPACE,
        path,
    ])
    .ok()
}
