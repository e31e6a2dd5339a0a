//! How the API server is reached: a kubeconfig, the pod's own account, or a bare address.

use std::path::{Path, PathBuf};

use http::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::cipher;

/// How long a connection may take to come about.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

/// Where address and credentials come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// A kubeconfig.
    Kubeconfig(PathBuf),
    /// The files that `KUBECONFIG` names, else the account of the pod that this program runs in.
    #[default]
    Environment,
}

/// How the API server is reached. Read anew when credentials have to be renewed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Where address and credentials come from.
    pub credentials: Credentials,
    /// Another address for the server, as kube-proxy's `--master`.
    pub master: Option<String>,
    /// What the server's audit log shows: program and version.
    pub user_agent: String,
}

/// Why there is no way to reach an API server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A kubeconfig cannot be used.
    #[error("{}: {message}; name a kubeconfig as kubectl writes it", place.display())]
    Kubeconfig {
        /// The file, or `KUBECONFIG`.
        place: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Neither a kubeconfig nor a pod.
    #[error(
        "no API server is known: KUBECONFIG is not set, and this is no pod ({0}); give --kubeconfig PATH or --cluster PATH"
    )]
    Nowhere(String),
    /// `--master` is no address.
    #[error("--master {master}: {message}; write it as https://10.0.0.1:6443")]
    Master {
        /// As given.
        master: String,
        /// What is wrong.
        message: String,
    },
    /// The credentials cannot be used.
    #[error(
        "the credentials for {server} cannot be used: {message}; check certificate, key, token, or the command that makes them"
    )]
    Credentials {
        /// The server's address.
        server: String,
        /// What is wrong.
        message: String,
    },
    /// The operating system gives no thread.
    #[error("the API server cannot be followed: {0}; look at this machine's limits")]
    Thread(String),
}

impl Access {
    /// A kubeconfig for the program `user_agent`.
    pub fn kubeconfig(path: &Path, user_agent: &str) -> Self {
        Self {
            credentials: Credentials::Kubeconfig(path.to_owned()),
            master: None,
            user_agent: user_agent.to_owned(),
        }
    }

    /// What the environment says, for the program `user_agent`.
    pub fn environment(user_agent: &str) -> Self {
        Self {
            credentials: Credentials::Environment,
            master: None,
            user_agent: user_agent.to_owned(),
        }
    }

    /// Whether address and credentials can be found and read; no server is asked.
    pub async fn check(&self) -> Result<(), AccessError> {
        self.config().await.map(drop)
    }

    /// A client, and the server's address.
    pub(super) async fn client(&self) -> Result<(Client, String), AccessError> {
        let config = self.config().await?;
        let server = config.cluster_url.to_string();
        cipher::prefer_fast_ones();
        let client = Client::try_from(config);
        let client = client.map_err(|error| AccessError::Credentials {
            server: server.clone(),
            message: error.to_string(),
        })?;
        Ok((client, server))
    }

    async fn config(&self) -> Result<Config, AccessError> {
        let mut config = match &self.credentials {
            Credentials::Kubeconfig(path) => of_file(path).await?,
            Credentials::Environment => self.of_environment().await?,
        };
        if let Some(master) = &self.master {
            config.cluster_url = address(master)?;
        }
        if config.accept_invalid_certs || config.cluster_url.scheme_str() == Some("http") {
            // Nobody's certificate is looked at. Without this the client reads the authorities of the system, and fails
            // where there are none, as in a container's image.
            config.root_cert.get_or_insert_default();
        }
        // The loops above wait as the server asks; a retry underneath would hide what it says.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        if let Ok(agent) = HeaderValue::from_str(&self.user_agent) {
            config.headers.push((USER_AGENT, agent));
        }
        Ok(config)
    }

    async fn of_environment(&self) -> Result<Config, AccessError> {
        let place = || PathBuf::from("KUBECONFIG");
        let read = Kubeconfig::from_env().map_err(|error| kubeconfig(place(), &error))?;
        if let Some(read) = read {
            return of_kubeconfig(read, place()).await;
        }
        match (Config::incluster(), &self.master) {
            (Ok(config), _) => Ok(config),
            (Err(_), Some(master)) => Ok(Config::new(address(master)?)),
            (Err(error), None) => Err(AccessError::Nowhere(error.to_string())),
        }
    }
}

async fn of_file(path: &Path) -> Result<Config, AccessError> {
    let read = Kubeconfig::read_from(path).map_err(|error| kubeconfig(path.to_owned(), &error))?;
    of_kubeconfig(read, path.to_owned()).await
}

async fn of_kubeconfig(read: Kubeconfig, place: PathBuf) -> Result<Config, AccessError> {
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.map_err(|error| kubeconfig(place, &error))
}

fn kubeconfig(place: PathBuf, error: &kube::config::KubeconfigError) -> AccessError {
    AccessError::Kubeconfig {
        place,
        message: error.to_string().replace('\n', " "),
    }
}

fn address(master: &str) -> Result<http::Uri, AccessError> {
    let wrong = |message: String| AccessError::Master {
        master: master.to_owned(),
        message,
    };
    let uri: http::Uri = master
        .parse()
        .map_err(|_why: http::uri::InvalidUri| wrong("not an address".to_owned()))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) => Ok(uri),
        _ => Err(wrong("not an http or https address".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_scheme_and_host() {
        for good in [
            "https://10.0.0.1:6443",
            "http://[fd00::1]:8080",
            "https://api.example.com/cluster/1",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["10.0.0.1:6443", "ftp://a", "https://", "not an address"] {
            let error = address(bad).unwrap_err().to_string();
            assert!(error.contains("write it as https://"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let missing = Access::kubeconfig(&path, "test").check().await.unwrap_err();
        assert!(missing.to_string().contains("config: "), "{missing}");
        std::fs::write(&path, "apiVersion: v1\nkind: Config\n").unwrap();
        let empty = Access::kubeconfig(&path, "test").check().await.unwrap_err();
        assert!(empty.to_string().contains("current context"), "{empty}");
    }
}
