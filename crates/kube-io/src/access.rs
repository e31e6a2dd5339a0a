//! Finds the API server and the credentials: a kubeconfig, the pod's service account, or a bare
//! address.

mod error;
mod kubeconfig;
mod plugin;
mod unusable;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use http::header::{HeaderValue, USER_AGENT};
use kube::config::Kubeconfig;
use kube::{Client, Config};

use crate::cipher;
pub use error::AccessError;

/// The time limit for a connection attempt.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    Kubeconfig(PathBuf),
    /// Like kubectl: the files in `KUBECONFIG`, else `~/.kube/config`, else the service account of
    /// the pod.
    #[default]
    Environment,
}

/// How to reach the API server. Read again when credentials are renewed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Where address and credentials come from.
    pub credentials: Credentials,
    /// The context of the kubeconfig; if none, the current context.
    pub context: Option<String>,
    /// The user to impersonate. The credentials need the permission `impersonate`.
    pub impersonate: Option<String>,
    /// Replaces the address of the server, like kube-proxy's `--master`.
    pub master: Option<String>,
    /// Program and version, for the audit log of the server.
    pub user_agent: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub server: String,
    pub context: Option<String>,
}

/// `https://10.0.0.1:6443 (context shop)`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.server)?;
        let context = self.context.as_ref();
        context.map_or(Ok(()), |context| write!(f, " (context {context})"))
    }
}

struct FoundConfig {
    config: Config,
    context: Option<String>,
}

impl Access {
    /// Uses this kubeconfig, for the program `user_agent`.
    pub fn kubeconfig(path: &Path, user_agent: &str) -> Self {
        Self {
            credentials: Credentials::Kubeconfig(path.to_owned()),
            user_agent: user_agent.to_owned(),
            ..Self::default()
        }
    }

    /// Uses the environment's kubeconfig or service account, for the program `user_agent`.
    pub fn environment(user_agent: &str) -> Self {
        Self {
            user_agent: user_agent.to_owned(),
            ..Self::default()
        }
    }

    /// Checks that address and credentials can be found and read. Sends no request.
    pub async fn check(&self) -> Result<(), AccessError> {
        self.config().await.map(drop)
    }

    /// The default namespace: that of the context or of the pod.
    pub async fn namespace(&self) -> Result<String, AccessError> {
        Ok(self.config().await?.default_namespace)
    }

    pub async fn address(&self) -> Result<Address, AccessError> {
        let FoundConfig { config, context } = self.found().await?;
        let server = config.cluster_url.to_string();
        Ok(Address {
            server: server.trim_end_matches('/').to_owned(),
            context,
        })
    }

    /// Returns a client and the server's address.
    pub(crate) async fn client(&self) -> Result<(Client, String), AccessError> {
        let mut config = self.config().await?;
        let server = config.cluster_url.to_string();
        let ends = plugin::resolve(&mut config).await;
        let ends = ends.map_err(|message| AccessError::Credentials {
            server: server.clone(),
            message,
            remedy: "run it by hand, or correct users[].user.exec of the kubeconfig",
        })?;
        unusable::check_token(&config).map_err(|error| unusable::error(&server, &error))?;
        cipher::prefer_fast_ones();
        let client = Client::try_from(config);
        let client = client.map_err(|error| unusable::error(&server, &error))?;
        Ok((client.with_valid_until(ends), server))
    }

    async fn config(&self) -> Result<Config, AccessError> {
        Ok(self.found().await?.config)
    }

    async fn found(&self) -> Result<FoundConfig, AccessError> {
        let FoundConfig {
            mut config,
            context,
        } = match &self.credentials {
            Credentials::Kubeconfig(path) => {
                let read = kubeconfig::read(path)?;
                self.of_kubeconfig(read, path).await?
            }
            Credentials::Environment => self.of_environment().await?,
        };
        if let Some(master) = &self.master {
            config.cluster_url = address(master)?;
        }
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        if config.accept_invalid_certs || config.cluster_url.scheme_str() == Some("http") {
            // No certificate is checked. Without this line the client reads the certificate
            // authorities of the system and fails in an image without any.
            config.root_cert.get_or_insert_default();
        }
        // The callers wait as long as the server asks for. A retry in the client would hide that
        // answer.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        if let Ok(agent) = HeaderValue::from_str(&self.user_agent) {
            config.headers.push((USER_AGENT, agent));
        }
        Ok(FoundConfig { config, context })
    }

    async fn of_kubeconfig(
        &self,
        read: Kubeconfig,
        place: &Path,
    ) -> Result<FoundConfig, AccessError> {
        let context = self.context.clone().or(read.current_context.clone());
        let config = kubeconfig::config(read, self.context.as_deref(), place).await?;
        Ok(FoundConfig { config, context })
    }

    async fn of_environment(&self) -> Result<FoundConfig, AccessError> {
        let places = kubeconfig::places(std::env::var_os("KUBECONFIG"), std::env::home_dir());
        if let Some(read) = kubeconfig::merged(&places)? {
            let files = std::env::join_paths(&places).unwrap_or_default();
            return self.of_kubeconfig(read, Path::new(&files)).await;
        }
        if let Some(context) = &self.context {
            return Err(AccessError::NoContext(context.clone()));
        }
        let config = match (Config::incluster(), &self.master) {
            (Ok(config), _) => config,
            (Err(_), Some(master)) => Config::new(address(master)?),
            (Err(_), None) => return Err(AccessError::Nowhere),
        };
        Ok(FoundConfig {
            config,
            context: None,
        })
    }
}

/// Without a scheme it is https, where client-go would send the credentials over http if there is no certificate.
fn address(master: &str) -> Result<http::Uri, AccessError> {
    let wrong = |message: String| AccessError::Master {
        master: master.to_owned(),
        message,
    };
    let with_scheme = if master.contains("://") {
        Cow::Borrowed(master)
    } else {
        Cow::Owned(format!("https://{master}"))
    };
    let uri: http::Uri = with_scheme
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
    fn an_address_needs_a_host_and_its_scheme_is_https_by_default() {
        for (written, expected) in [
            ("https://10.0.0.1:6443", "https://10.0.0.1:6443/"),
            ("http://[fd00::1]:8080", "http://[fd00::1]:8080/"),
            (
                "https://api.example.com/cluster/1",
                "https://api.example.com/cluster/1",
            ),
            ("10.0.0.1:6443", "https://10.0.0.1:6443/"),
            ("[fd00::1]:6443", "https://[fd00::1]:6443/"),
            ("api.example.com", "https://api.example.com/"),
        ] {
            assert_eq!(address(written).unwrap().to_string(), expected);
        }
        for bad in ["ftp://a", "https://", "", "not an address", "fd00::1"] {
            let error = address(bad).unwrap_err().to_string();
            assert!(error.contains("write it as https://"), "{error}");
        }
    }

    #[tokio::test]
    async fn the_client_impersonates_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], \
                    clusters: [{name: c, cluster: {server: 'http://10.0.0.1'}}]}";
        std::fs::write(&path, text).unwrap();
        let access = Access {
            impersonate: Some("jane".to_owned()),
            ..Access::kubeconfig(&path, "test")
        };
        let config = access.config().await.unwrap();
        assert_eq!(config.auth_info.impersonate.as_deref(), Some("jane"));
    }

    #[tokio::test]
    async fn the_namespace_is_that_of_the_context() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "{current-context: a, contexts: [{name: a, context: {cluster: c, namespace: shop}}, \
                    {name: b, context: {cluster: c}}], \
                    clusters: [{name: c, cluster: {server: 'http://10.0.0.1'}}]}";
        std::fs::write(&path, text).unwrap();
        for (context, namespace) in [(None, "shop"), (Some("b".to_owned()), "default")] {
            let access = Access {
                context,
                ..Access::kubeconfig(&path, "test")
            };
            assert_eq!(access.namespace().await.unwrap(), namespace);
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
