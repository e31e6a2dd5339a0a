//! Options for the source of the cluster state.

use std::path::PathBuf;

use clap::Args;
use kube_io::{Access, Credentials};

use crate::origin::Origin;

/// The user agent in the API server's audit log.
const USER_AGENT: &str = concat!("ipvs-topo/", env!("CARGO_PKG_VERSION"));

/// Without an option, the API server that kubectl would use.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct OriginArgs {
    /// A file or folder with Kubernetes YAML or JSON, or `-` for standard input.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context", "impersonate", "master"])]
    pub cluster: Option<PathBuf>,

    /// The kubeconfig with the API server; default: `KUBECONFIG`, else `~/.kube/config`, else the
    /// account of the pod.
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// A context of the kubeconfig; default: its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The user to impersonate; the credentials must allow it.
    #[arg(long = "as", value_name = "USER")]
    pub impersonate: Option<String>,

    /// Another address for the API server; `HOST:PORT` is https.
    #[arg(long, value_name = "URL")]
    pub master: Option<String>,
}

impl OriginArgs {
    pub fn get(&self) -> Origin {
        match &self.cluster {
            Some(path) => Origin::Files(path.clone()),
            None => Origin::Api(Access {
                credentials: (self.kubeconfig.clone())
                    .map_or(Credentials::Environment, Credentials::Kubeconfig),
                context: self.context.clone(),
                impersonate: self.impersonate.clone(),
                master: self.master.clone(),
                user_agent: USER_AGENT.to_owned(),
            }),
        }
    }

    /// The same for commands that query the running agent without an option.
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
