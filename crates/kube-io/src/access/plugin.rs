//! Runs credential plugins: the command of a kubeconfig that makes a token or a client certificate.
//!
//! The `kube` crate would run it in the thread of the reconcile loop and without a time limit.

use std::io::IsTerminal as _;
use std::time::Duration;

use http::header::HeaderValue;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::Config;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde_json::json;

use object_tree::{self as yaml, Node};
use safe_text::{one_line, shorten};
use subprocess::{ChildError, Input, Program};

/// The time limit of a plugin without a terminal.
const DEADLINE: Duration = Duration::from_secs(30);

/// The time limit of a plugin that asks the user at a terminal.
const DEADLINE_AT_TERMINAL: Duration = Duration::from_secs(300);

#[derive(Default)]
struct Printed {
    token: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    ends: Option<Timestamp>,
}

/// Runs the plugin, if the configuration uses one, and replaces it with the credentials that it
/// printed. Returns when they expire.
pub(super) async fn resolve(config: &mut Config) -> Result<Option<Timestamp>, String> {
    let provider = config.auth_info.auth_provider.as_ref();
    if provider.is_some_and(|provider| provider.config.contains_key("cmd-path")) {
        // The `kube` crate would run it without a time limit.
        return Err("an auth-provider with a command is not run, as kubectl 1.26 removed it; use exec in its place".to_owned());
    }
    if goes_by_another(&config.auth_info) {
        return Ok(None);
    }
    let Some(exec) = config.auth_info.exec.take() else {
        return Ok(None);
    };
    let name = exec.command.clone().unwrap_or_default();
    let said = |why: String| format!("the credential plugin {name:?} {why}");
    let printed = run(&exec).await.map_err(said)?;
    let encoded = |text: String| {
        let value = serde_json::to_value(ByteString(text.into_bytes())).ok()?;
        value.as_str().map(str::to_owned)
    };
    let auth = &mut config.auth_info;
    auth.token = printed.token.map(Into::into);
    if let (Some(certificate), Some(key)) = (printed.certificate, printed.key) {
        auth.client_certificate_data = encoded(certificate);
        auth.client_key_data = encoded(key).map(Into::into);
    }
    Ok(printed.ends)
}

/// Whether the configuration has credentials that come before a plugin.
fn goes_by_another(auth: &AuthInfo) -> bool {
    let by_name = auth.username.is_some() && auth.password.is_some();
    by_name || auth.auth_provider.is_some() || auth.token.is_some() || auth.token_file.is_some()
}

async fn run(exec: &ExecConfig) -> Result<Printed, String> {
    let Some(command) = &exec.command else {
        return Err("has no command; add one to users[].user.exec".to_owned());
    };
    let at_terminal = std::io::stdin().is_terminal();
    let interactive = match &exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !at_terminal => {
            return Err(
                "has interactiveMode: Always, and standard input is not a terminal; run it where there is one"
                    .to_owned(),
            );
        }
        Some(ExecInteractiveMode::Always | ExecInteractiveMode::IfAvailable) | None => at_terminal,
    };
    let arguments: Vec<&str> = exec.args.iter().flatten().map(String::as_str).collect();
    let mut environment: Vec<(String, String)> = exec
        .env
        .iter()
        .flatten()
        .filter_map(|pair| Some((pair.get("name")?.clone(), pair.get("value")?.clone())))
        .collect();
    environment.push(("KUBERNETES_EXEC_INFO".to_owned(), info(exec, interactive)));
    let program = Program {
        program: command,
        arguments: &arguments,
        environment: &environment,
        input: if interactive {
            Input::Terminal
        } else {
            Input::None
        },
        deadline: if interactive {
            DEADLINE_AT_TERMINAL
        } else {
            DEADLINE
        },
    };
    let output = subprocess::run(&program)
        .await
        .map_err(|error| failed(exec, &error))?;
    if !output.status.success() {
        let errors = shown(&String::from_utf8_lossy(&output.stderr));
        return Err(format!("failed ({}): {errors}", output.status));
    }
    read(&output.stdout)
}

/// The input of a plugin: an `ExecCredential` of the plugin's version.
fn info(exec: &ExecConfig, interactive: bool) -> String {
    let cluster = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info);
    let spec = match cluster {
        Some(cluster) => json!({ "interactive": interactive, "cluster": cluster }),
        None => json!({ "interactive": interactive }),
    };
    json!({ "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec }).to_string()
}

fn failed(exec: &ExecConfig, error: &ChildError) -> String {
    match (error, &exec.install_hint) {
        (ChildError::NotRun(why), Some(hint)) if why.kind() == std::io::ErrorKind::NotFound => {
            format!("{error}; {}", shown(hint))
        }
        _ => error.to_string(),
    }
}

fn shown(text: &str) -> String {
    one_line(&shorten(text.trim())).into_owned()
}

/// Reads an `ExecCredential` in JSON or YAML. Errors do not repeat its text, which is secret.
fn read(text: &[u8]) -> Result<Printed, String> {
    let mut status = None;
    let end = yaml::read(text, |node| status = node.get("status").cloned());
    let Some(status) = status.filter(|_| end.is_ok()) else {
        return Err("printed no ExecCredential with a status; run it by hand".to_owned());
    };
    let text = |field: &str| status.get(field).and_then(Node::text).map(str::to_owned);
    let ends = text("expirationTimestamp").map(|ends| ends.parse::<Timestamp>());
    let printed = Printed {
        token: text("token"),
        certificate: text("clientCertificateData"),
        key: text("clientKeyData"),
        ends: ends.transpose().map_err(|_why| {
            "printed an expirationTimestamp that is not a time like 2026-11-22T10:00:00Z".to_owned()
        })?,
    };
    let has_token = printed.token.is_some();
    let has_pair = printed.certificate.is_some() && printed.key.is_some();
    if !has_token && !has_pair {
        return Err("printed neither a token nor a certificate with its key".to_owned());
    }
    let fits = |token: &String| HeaderValue::from_str(token).is_ok();
    if printed.token.as_ref().is_some_and(|token| !fits(token)) {
        return Err("printed a token that no header can hold".to_owned());
    }
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use kube::Client;
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::{Access, AccessError};

    /// A kubeconfig whose plugin is this script.
    struct Plugin {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl Plugin {
        fn new(script: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config");
            let exec = json!({
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "sh",
                "args": ["-c", script],
                "env": [{"name": "COLOUR", "value": "red"}],
                "interactiveMode": "Never",
                "installHint": "install it",
            });
            let config = json!({
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": {"exec": exec}}],
                "clusters": [{"name": "c", "cluster": {"server": "http://10.0.0.1"}}],
            });
            std::fs::write(&path, config.to_string()).unwrap();
            Self {
                _folder: folder,
                path,
            }
        }

        fn access(&self) -> Access {
            Access::kubeconfig(&self.path, "test")
        }

        async fn client(&self) -> Result<Client, AccessError> {
            Ok(self.access().client().await?.0)
        }

        async fn refused(&self) -> String {
            self.client()
                .await
                .err()
                .expect("no client is made")
                .to_string()
        }
    }

    #[tokio::test]
    async fn a_plugin_gives_a_token_that_expires() {
        let script = "echo \"status: {token: $COLOUR-$(echo $KUBERNETES_EXEC_INFO | grep -c '\\\"interactive\\\":false'), \
                      expirationTimestamp: 2100-01-01T00:00:00Z}\"";
        let plugin = Plugin::new(script);
        let ends = *plugin.client().await.unwrap().valid_until();
        assert_eq!(ends, Some("2100-01-01T00:00:00Z".parse().unwrap()));
        let mut config = plugin.access().config().await.unwrap();
        resolve(&mut config).await.unwrap();
        let auth = &config.auth_info;
        assert_eq!(auth.token.as_ref().unwrap().expose_secret(), "red-1");
        assert!(auth.exec.is_none(), "no library runs it again");
    }

    #[tokio::test]
    async fn a_plugin_gives_a_certificate() {
        let plugin = Plugin::new(
            "echo '{\"status\": {\"clientCertificateData\": \"a\", \"clientKeyData\": \"b\"}}'",
        );
        let mut config = plugin.access().config().await.unwrap();
        assert_eq!(resolve(&mut config).await.unwrap(), None);
        let auth = &config.auth_info;
        assert_eq!(auth.client_certificate_data.as_deref(), Some("YQ=="));
        assert_eq!(
            auth.client_key_data.as_ref().unwrap().expose_secret(),
            "Yg=="
        );
    }

    #[tokio::test]
    async fn errors_of_a_plugin_have_the_reason_and_no_secret() {
        let cases = [
            (
                "echo no $COLOUR >&2; exit 3",
                "failed (exit status: 3): no red; run it by hand",
            ),
            (
                "echo 's3cret: ['",
                "printed no ExecCredential with a status",
            ),
            (
                "echo 'status: {tok: s3cret}'",
                "printed neither a token nor a certificate",
            ),
            (
                "echo 'status: {token: \"s3cret\\u0007\"}'",
                "printed a token that no header can hold",
            ),
            (
                "echo 'status: {token: s3cret, expirationTimestamp: soon}'",
                "an expirationTimestamp that is not a time",
            ),
            ("kill -9 $$", "ended by signal 9"),
        ];
        for (script, expected) in cases {
            let refused = Plugin::new(script).refused().await;
            assert!(
                refused.contains("the credential plugin \"sh\" "),
                "{refused}"
            );
            assert!(refused.contains(expected), "{script}: {refused}");
            assert!(!refused.contains("s3cret"), "{refused}");
        }
        let plugin = Plugin::new("");
        let text = std::fs::read_to_string(&plugin.path).unwrap();
        std::fs::write(&plugin.path, text.replace("\"sh\"", "\"/nowhere/plugin\"")).unwrap();
        let missing = plugin.refused().await;
        assert!(missing.contains("(os error 2); install it"), "{missing}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_is_killed_at_its_deadline() {
        // Time is paused, so the deadline passes when the runtime is idle.
        let refused = Plugin::new("sleep 1000000; true").refused().await;
        assert!(
            refused.contains("did not end within 30 s and was killed; run it by hand"),
            "{refused}"
        );
    }
}
