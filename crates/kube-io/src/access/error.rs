//! Says why there is no way to reach an API server.

use std::path::PathBuf;

/// Why there is no way to reach an API server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A kubeconfig cannot be used.
    #[error("{}: {message}; {remedy}", place.display())]
    Kubeconfig {
        /// The file, or those that were merged.
        place: PathBuf,
        /// What is wrong.
        message: String,
        /// What helps.
        remedy: &'static str,
    },
    /// Neither a kubeconfig nor a pod.
    #[error(
        "no API server is known: neither KUBECONFIG nor ~/.kube/config leads to a kubeconfig, and this is no pod with an account; give --kubeconfig PATH or --cluster PATH"
    )]
    Nowhere,
    /// A context of no kubeconfig.
    #[error(
        "--context {0}: neither KUBECONFIG nor ~/.kube/config leads to a kubeconfig; give --kubeconfig PATH"
    )]
    NoContext(String),
    /// `--master` is no address.
    #[error("--master {master}: {message}; write it as https://10.0.0.1:6443")]
    Master {
        /// As given.
        master: String,
        /// What is wrong.
        message: String,
    },
    /// The credentials cannot be used.
    #[error("the credentials for {server} cannot be used: {message}; {remedy}")]
    Credentials {
        /// The server's address.
        server: String,
        /// What is wrong.
        message: String,
        /// What helps.
        remedy: &'static str,
    },
    /// The operating system gives no thread.
    #[error("the API server cannot be followed: {0}; look at this machine's limits")]
    Thread(String),
}
