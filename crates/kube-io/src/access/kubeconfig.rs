//! Finds and reads kubeconfigs like kubectl, and describes errors without a parser's own message.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::Scheme;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError};

use super::error::AccessError;

/// The files that kubectl reads without `--kubeconfig`: those of `KUBECONFIG`, else
/// `~/.kube/config`.
pub(super) fn places(variable: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    match variable.filter(|files| !files.is_empty()) {
        Some(files) => std::env::split_paths(&files)
            .filter(|file| !file.as_os_str().is_empty())
            .collect(),
        None => home
            .map(|home| home.join(".kube").join("config"))
            .into_iter()
            .collect(),
    }
}

/// Merges the files that exist. For each name and value the first file wins. Returns `None` if they
/// are empty: kubectl, too, then uses the pod's service account.
pub(super) fn merged(places: &[PathBuf]) -> Result<Option<Kubeconfig>, AccessError> {
    let mut merged = Kubeconfig::default();
    for place in places.iter().filter(|place| place.exists()) {
        let next = read(place)?;
        merged = merged.merge(next).map_err(|error| wrong(place, &error))?;
    }
    let is_empty = merged.clusters.is_empty() && merged.contexts.is_empty();
    Ok((!is_empty).then_some(merged))
}

/// Reads a kubeconfig and makes its paths absolute.
pub(super) fn read(place: &Path) -> Result<Kubeconfig, AccessError> {
    Kubeconfig::read_from(place).map_err(|error| wrong(place, &error))
}

/// Address and credentials of `context`, else of the current context. `place` is the file, for
/// errors.
pub(super) async fn config(
    read: Kubeconfig,
    context: Option<&str>,
    place: &Path,
) -> Result<Config, AccessError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    let mut config = config.map_err(|error| wrong(place, &error))?;
    config.cluster_url = with_scheme(&config).ok_or_else(|| {
        let (message, remedy) = not_an_address();
        AccessError::Kubeconfig {
            place: place.to_owned(),
            message,
            remedy,
        }
    })?;
    Ok(config)
}

/// The address of the server. As for kubectl, one without a scheme is https if the kubeconfig has a
/// certificate or skips the check of the server's, else http.
fn with_scheme(config: &Config) -> Option<Uri> {
    let server = &config.cluster_url;
    match (server.scheme_str(), server.authority()) {
        (Some("http" | "https"), Some(_)) => Some(server.clone()),
        (None, Some(authority)) => {
            let scheme = if names_tls(config) {
                Scheme::HTTPS
            } else {
                Scheme::HTTP
            };
            let uri = Uri::builder().scheme(scheme).authority(authority.clone());
            uri.path_and_query("/").build().ok()
        }
        _ => None,
    }
}

fn names_tls(config: &Config) -> bool {
    let client = &config.auth_info;
    config.root_cert.is_some()
        || config.accept_invalid_certs
        || client.client_certificate.is_some()
        || client.client_certificate_data.is_some()
}

fn wrong(place: &Path, error: &KubeconfigError) -> AccessError {
    let (message, remedy) = words(error);
    AccessError::Kubeconfig {
        place: place.to_owned(),
        message,
        remedy,
    }
}

/// Returns the message and the remedy. A parser's own message may repeat lines of the file, and
/// secrets in them.
fn words(error: &KubeconfigError) -> (String, &'static str) {
    const FIT: &str = "make it a kubeconfig as kubectl writes it";
    match error {
        KubeconfigError::CurrentContextNotSet => (
            "no current context is set".to_owned(),
            "set it with kubectl config use-context, or give --context NAME",
        ),
        KubeconfigError::LoadContext(name) => (
            format!("it has no context {name:?}"),
            "choose one that kubectl config get-contexts shows, with --context NAME",
        ),
        KubeconfigError::LoadClusterOfContext(name) => (
            format!("its context names the cluster {name:?}, which it does not have"),
            "add the cluster, or give --context NAME",
        ),
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => (
            "its documents, or those of the files before it, differ in kind or apiVersion"
                .to_owned(),
            "write kind: Config and apiVersion: v1 in all of them",
        ),
        KubeconfigError::FindPath => ("it is not found".to_owned(), "give --kubeconfig PATH"),
        KubeconfigError::ReadConfig(error, _) => (
            format!("it cannot be read: {error}"),
            "correct the path or its permissions",
        ),
        KubeconfigError::Parse(_) => ("it is not a kubeconfig in YAML or JSON".to_owned(), FIT),
        KubeconfigError::MissingClusterUrl => (
            "its cluster has no server".to_owned(),
            "add server: https://HOST:PORT",
        ),
        KubeconfigError::ParseClusterUrl(_) => not_an_address(),
        KubeconfigError::ParseProxyUrl(_) => (
            "its proxy-url is not an address".to_owned(),
            "write it as http://10.0.0.1:3128",
        ),
        KubeconfigError::LoadCertificateAuthority(error) => {
            (data("certificate-authority", error), FIT)
        }
        KubeconfigError::LoadClientCertificate(error) => (data("client-certificate", error), FIT),
        KubeconfigError::LoadClientKey(error) => (data("client-key", error), FIT),
        KubeconfigError::ParseCertificates(_) => (
            "its certificate-authority is not PEM".to_owned(),
            "use a certificate in PEM",
        ),
        KubeconfigError::ParseNoProxy(_) => (
            "the variable NO_PROXY cannot be used".to_owned(),
            "correct NO_PROXY",
        ),
    }
}

fn not_an_address() -> (String, &'static str) {
    (
        "the server of its cluster is not an http or https address".to_owned(),
        "write it as https://10.0.0.1:6443",
    )
}

fn data(field: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("its {field}-data is not base64"),
        LoadDataError::ReadFile(error, path) => {
            format!("its {field} {} cannot be read: {error}", path.display())
        }
        LoadDataError::NoBase64DataOrFile => format!("it has no {field}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kubeconfig with a context, and a cluster at this address.
    fn text(name: &str, server: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
             contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}}}}}]\n\
             clusters: [{{name: {name}, cluster: {{server: '{server}'}}}}]\n"
        )
    }

    #[test]
    fn files_are_found_where_kubectl_finds_them() {
        let home = || Some(PathBuf::from("/home/me"));
        let found = places(Some("/a::/b".into()), home());
        assert_eq!(found, [PathBuf::from("/a"), PathBuf::from("/b")]);
        for unset in [None, Some(OsString::new())] {
            assert_eq!(
                places(unset, home()),
                [PathBuf::from("/home/me/.kube/config")]
            );
        }
        assert!(places(None, None).is_empty());
    }

    #[tokio::test]
    async fn the_first_file_wins_and_a_missing_file_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, gone] =
            ["first", "second", "gone"].map(|name| folder.path().join(name));
        std::fs::write(&first, text("one", "https://10.0.0.1:1")).unwrap();
        std::fs::write(&second, text("two", "https://10.0.0.2:2")).unwrap();
        let all = [gone.clone(), first, second];
        let server = async |context| {
            let read = merged(&all).unwrap().unwrap();
            config(read, context, &gone)
                .await
                .unwrap()
                .cluster_url
                .to_string()
        };
        assert_eq!(server(None).await, "https://10.0.0.1:1/");
        assert_eq!(server(Some("two")).await, "https://10.0.0.2:2/");
        assert!(merged(std::slice::from_ref(&gone)).unwrap().is_none());
    }

    #[tokio::test]
    async fn an_address_without_a_scheme_is_https_if_the_file_names_tls_as_for_kubectl() {
        let server = async |cluster: &str, user: &str| {
            let text = format!(
                "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
                 clusters: [{{name: c, cluster: {{{cluster}}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
            );
            let read = Kubeconfig::from_yaml(&text).unwrap();
            let config = config(read, None, Path::new("config")).await;
            config.map(|config| config.cluster_url.to_string())
        };
        let host = "server: '10.0.0.1:6443'";
        for (cluster, user, expected) in [
            (host, "token: t", "http://10.0.0.1:6443/"),
            (
                "server: '10.0.0.1:6443', insecure-skip-tls-verify: true",
                "",
                "https://10.0.0.1:6443/",
            ),
            (
                host,
                "client-certificate-data: YQ==, client-key-data: YQ==",
                "https://10.0.0.1:6443/",
            ),
            ("server: localhost", "", "http://localhost/"),
            (
                "server: 'https://10.0.0.1/clusters/1'",
                "",
                "https://10.0.0.1/clusters/1",
            ),
        ] {
            assert_eq!(server(cluster, user).await.unwrap(), expected);
        }
        for wrong in ["server: 'ftp://10.0.0.1'", "server: /clusters/1"] {
            let error = server(wrong, "").await.unwrap_err().to_string();
            assert!(error.contains("not an http or https address"), "{error}");
        }
    }

    #[tokio::test]
    async fn errors_have_file_and_remedy_and_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let shown = async |text: &str, context| {
            std::fs::write(&file, text).unwrap();
            let read = match read(&file) {
                Ok(read) => read,
                Err(error) => return error.to_string(),
            };
            config(read, context, &file).await.unwrap_err().to_string()
        };
        let broken = shown("users: [{name: me, user: {token: s3cret}\n}", None).await;
        assert!(
            broken.contains("config: it is not a kubeconfig"),
            "{broken}"
        );
        assert!(!broken.contains("s3cret"), "{broken}");
        let good = text("one", "https://10.0.0.1:1");
        let unknown = shown(&good, Some("two")).await;
        assert!(
            unknown.contains("it has no context \"two\"; choose"),
            "{unknown}"
        );
        let unset = shown(&good.replace("current-context", "other"), None).await;
        assert!(unset.contains("--context NAME"), "{unset}");
        let address = shown(&text("one", "not an address"), None).await;
        assert!(address.contains("https://10.0.0.1:6443"), "{address}");
    }
}
