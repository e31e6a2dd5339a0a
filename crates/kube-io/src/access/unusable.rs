//! Describes why credentials cannot be used. A library's own message may repeat a secret.

use http::header::HeaderValue;
use kube::client::{AuthError, RustlsTlsError};
use kube::{Config, Error};
use secrecy::ExposeSecret as _;

use super::error::AccessError;

/// Makes the error for credentials of `server` with which no client can be built.
pub(super) fn error(server: &str, error: &Error) -> AccessError {
    let (message, remedy) = words(error);
    AccessError::Credentials {
        server: server.to_owned(),
        message,
        remedy,
    }
}

/// Refuses a token that is not a valid header: building the client would panic.
pub(super) fn check_token(config: &Config) -> Result<(), Error> {
    let Some(token) = &config.auth_info.token else {
        return Ok(());
    };
    HeaderValue::from_str(token.expose_secret())
        .map(drop)
        .map_err(|why| Error::Auth(AuthError::InvalidBearerToken(why)))
}

fn words(error: &Error) -> (String, &'static str) {
    match error {
        Error::Auth(error) => authentication(error),
        Error::RustlsTls(error) => certificate(error),
        Error::ProxyProtocolUnsupported { .. } | Error::ProxyProtocolDisabled { .. } => (
            "the protocol of its proxy is not supported".to_owned(),
            "write proxy-url as http://HOST:PORT",
        ),
        // The other errors come from requests, not from building a client.
        _ => (
            "no client can be built with them".to_owned(),
            "check certificate, key and token of the kubeconfig",
        ),
    }
}

fn authentication(error: &AuthError) -> (String, &'static str) {
    match error {
        AuthError::InvalidBasicAuth(_) => (
            "username or password holds characters that a header cannot".to_owned(),
            "correct username and password of the kubeconfig",
        ),
        AuthError::InvalidBearerToken(_) => (
            "the token holds characters that a header cannot".to_owned(),
            "correct the token: one line, without quotes",
        ),
        AuthError::ReadTokenFile(error, path) => (
            format!("the token file {} cannot be read: {error}", path.display()),
            "correct tokenFile of the kubeconfig, or the permissions of the file",
        ),
        AuthError::NoValidNativeRootCA(_) => (
            "this machine trusts no certificate authority".to_owned(),
            "add certificate-authority to the cluster of the kubeconfig",
        ),
        // `plugin.rs` reports the errors of commands.
        _ => (
            "its auth-provider cannot be used".to_owned(),
            "use a credential plugin (users[].user.exec) in its place",
        ),
    }
}

fn certificate(error: &RustlsTlsError) -> (String, &'static str) {
    const CLIENT: &str = "correct client-certificate and client-key of the kubeconfig, both PEM";
    const AUTHORITY: &str = "correct certificate-authority of the kubeconfig";
    match error {
        RustlsTlsError::InvalidIdentityPem(_) => {
            ("client certificate or key is not PEM".to_owned(), CLIENT)
        }
        RustlsTlsError::MissingPrivateKey => (
            "the client certificate has no private key".to_owned(),
            CLIENT,
        ),
        RustlsTlsError::MissingCertificate => (
            "the private key has no client certificate".to_owned(),
            CLIENT,
        ),
        RustlsTlsError::InvalidPrivateKey(_) | RustlsTlsError::UnknownPrivateKeyFormat => (
            "the client's private key cannot be used with its certificate".to_owned(),
            CLIENT,
        ),
        RustlsTlsError::AddRootCertificate(_) => (
            "the certificate authority is not a certificate".to_owned(),
            AUTHORITY,
        ),
        RustlsTlsError::NoValidNativeRootCA(_) => (
            "this machine trusts no certificate authority".to_owned(),
            "add certificate-authority to the cluster of the kubeconfig",
        ),
        RustlsTlsError::InvalidServerName(_) => (
            "tls-server-name is not a valid name".to_owned(),
            "correct tls-server-name of the kubeconfig",
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::Access;

    /// The error for a kubeconfig with this `user`.
    async fn said(user: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
             users: [{{name: u, user: {user}}}], \
             clusters: [{{name: c, cluster: {{server: 'https://10.0.0.1', insecure-skip-tls-verify: true}}}}]}}"
        );
        std::fs::write(&path, text).unwrap();
        let opened = Access::kubeconfig(&path, "test").client().await;
        opened
            .err()
            .expect("the credentials are unusable")
            .to_string()
    }

    #[tokio::test]
    async fn unusable_credentials_are_reported_without_the_librarys_message() {
        let cases = [
            ("{token: \"s3cret\\n\"}", "the token holds characters"),
            (
                "{tokenFile: /nowhere/s3cret}",
                "the token file /nowhere/s3cret cannot be read",
            ),
            (
                "{client-certificate-data: czNjcmV0, client-key-data: czNjcmV0}",
                "client certificate",
            ),
            ("{auth-provider: {name: azure}}", "its auth-provider"),
            (
                "{auth-provider: {name: gcp, config: {cmd-path: /bin/false}}}",
                "an auth-provider with a command is not run",
            ),
        ];
        for (user, expected) in cases {
            let said = said(user).await;
            assert!(said.contains("the credentials for https://10.0.0.1/ cannot be used: "));
            assert!(said.contains(expected), "{user}: {said}");
            assert!(said.contains("; "), "{said}");
            let is_path = user.contains("tokenFile");
            assert!(is_path || !said.contains("s3cret"), "{said}");
            for words in ["auth error", "tls error", "auth exec"] {
                assert!(!said.contains(words), "{said}");
            }
        }
    }
}
