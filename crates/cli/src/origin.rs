//! The source of the cluster state: files or an API server.

use std::fmt;
use std::path::PathBuf;

use cluster::api::{self, WatchOptions};
use cluster::source::{self, Loaded, Options, Watch};
use kube_io::{Access, Credentials};
use topology_core::model::ObjectName;

use crate::exit::Failure;
use crate::output::print::aside;

/// The source of the cluster state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file, a folder, or `-` for standard input.
    Files(PathBuf),
    /// An API server.
    Api(Access),
}

impl Origin {
    /// Reads the whole cluster once. Must not run in an async task.
    ///
    /// # Errors
    /// Nothing could be read; partial failures are warnings.
    pub fn read(&self, options: &Options) -> Result<Loaded, Failure> {
        match self {
            Self::Files(path) => source::read(path, options).map_err(Failure::input),
            Self::Api(access) => {
                let waiting =
                    |server: &str| aside(&format!("reading the cluster from {server} ..."));
                api::read(access, options, waiting).map_err(fetch)
            }
        }
    }

    /// Watches the cluster. Of `options`, files use what Services may use, and which Services to read.
    ///
    /// # Errors
    /// The path does not exist, or the server or the credentials are unknown.
    pub fn watch(&self, options: WatchOptions) -> Result<Watch, Failure> {
        match self {
            Self::Files(path) => {
                source::check(path).map_err(Failure::input)?;
                source::watch(path, options).map_err(Failure::input)
            }
            Self::Api(access) => api::watch(access, options).map_err(Failure::input),
        }
    }

    /// The namespace of the kubeconfig's context; `None` for files.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub fn namespace(&self) -> Result<Option<String>, Failure> {
        match self {
            Self::Files(_) => Ok(None),
            Self::Api(access) => api::namespace(access).map(Some).map_err(Failure::input),
        }
    }

    /// The path, or the server's address and the context of the kubeconfig.
    pub fn in_full(&self) -> String {
        let address = match self {
            Self::Files(_) => None,
            Self::Api(access) => api::address(access).ok(),
        };
        address.map_or_else(|| self.to_string(), |address| address.to_string())
    }

    /// The annotations of a Service with keys that begin with `prefix`.
    ///
    /// # Errors
    /// The API server does not return the Service. Files that cannot be read were reported before.
    pub fn annotations(
        &self,
        service: &ObjectName,
        prefix: &str,
    ) -> Result<Vec<(String, String)>, Failure> {
        match self {
            Self::Files(path) => Ok(source::annotations(path, service, prefix)),
            Self::Api(access) => api::annotations(access, service, prefix).map_err(fetch),
        }
    }
}

/// An unreachable server is an error of the environment; all other errors are errors of the input.
fn fetch(error: api::FetchError) -> Failure {
    match &error {
        api::FetchError::Access(_) => Failure::input(error),
        api::FetchError::Api { .. } | api::FetchError::Late { .. } => Failure::trouble(error),
    }
}

/// The path, the kubeconfig or the address.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(path) => path.display().fmt(f),
            Self::Api(access) => match (&access.master, &access.credentials) {
                (Some(master), _) => f.write_str(master),
                (None, Credentials::Kubeconfig(path)) => path.display().fmt(f),
                (None, Credentials::Environment) => f.write_str("the API server"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_by_its_server_and_context() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "{current-context: shop, contexts: [{name: shop, context: {cluster: c}}, \
                    {name: bank, context: {cluster: c}}], \
                    clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]}";
        std::fs::write(&path, text).unwrap();
        let origin = |context: Option<&str>, master: Option<&str>| {
            let master = master.map(str::to_owned);
            let context = context.map(str::to_owned);
            Origin::Api(Access {
                context,
                master,
                ..Access::kubeconfig(&path, "test")
            })
        };
        for (origin, expected) in [
            (origin(None, None), "https://10.0.0.1:6443 (context shop)"),
            (
                origin(Some("bank"), None),
                "https://10.0.0.1:6443 (context bank)",
            ),
            (
                origin(None, Some("http://[fd00::1]:8080")),
                "http://[fd00::1]:8080 (context shop)",
            ),
            (Origin::Files("shop.yaml".into()), "shop.yaml"),
        ] {
            assert_eq!(origin.in_full(), expected);
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(origin(None, None).in_full(), path.to_string_lossy());
    }
}
