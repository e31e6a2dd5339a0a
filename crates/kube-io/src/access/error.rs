//! Describes why no API server can be reached.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A kubeconfig cannot be used.
    #[error("{}: {message}; {remedy}", place.display())]
    Kubeconfig {
        /// The file, or the files that were merged.
        place: PathBuf,
        message: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// Neither a kubeconfig nor a pod.
    #[error(
        "no API server is known: neither KUBECONFIG nor ~/.kube/config leads to a kubeconfig, and the process is not in a pod with a service account; give --kubeconfig PATH or --cluster PATH"
    )]
    Nowhere,
    /// `--context` without a kubeconfig.
    #[error(
        "--context {0}: neither KUBECONFIG nor ~/.kube/config leads to a kubeconfig; give --kubeconfig PATH"
    )]
    NoContext(String),
    /// `--master` is not an address.
    #[error("--master {master}: {message}; write it as https://10.0.0.1:6443")]
    Master { master: String, message: String },
    /// The credentials cannot be used.
    #[error("the credentials for {server} cannot be used: {message}; {remedy}")]
    Credentials {
        server: String,
        message: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// The operating system cannot start a thread.
    #[error("the API server cannot be followed: {0}; look at this machine's limits")]
    Thread(String),
}
