//! Where the cluster is read from, as it is typed.

use std::path::PathBuf;

use clap::Args;

use crate::origin::Origin;

/// Where the cluster is read from; the API server that kubectl would ask if nothing is said.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct OriginArgs {
    /// File or folder with Kubernetes YAML or JSON, or `-` for standard input.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context", "impersonate", "master"])]
    pub cluster: Option<PathBuf>,

    /// Ask the API server that this kubeconfig names; default: `KUBECONFIG`, else `~/.kube/config`, else the account of
    /// the pod.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// A context of the kubeconfig; default: its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Ask as this user, whom the credentials must be allowed to impersonate.
    #[arg(long = "as", value_name = "USER")]
    pub impersonate: Option<String>,

    /// Another address for the API server.
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
}

impl OriginArgs {
    /// Where the cluster is read from.
    pub fn get(&self) -> Origin {
        match &self.cluster {
            Some(path) => Origin::Files(path.clone()),
            None => Origin::api(self.kubeconfig.clone(), self.master.clone())
                .seen_as(self.context.clone(), self.impersonate.clone()),
        }
    }

    /// The same for commands that ask the running agent if nothing is said.
    pub fn given(&self) -> Option<Origin> {
        let Self {
            cluster,
            kubeconfig,
            context,
            impersonate,
            master,
        } = self;
        let paths = cluster.is_some() || kubeconfig.is_some();
        let said = paths || context.is_some() || impersonate.is_some() || master.is_some();
        said.then(|| self.get())
    }
}
