//! Replaces the client when its credentials or its certificate authority are outdated.
//!
//! The client itself renews tokens from files and commands. A client certificate, a certificate
//! authority or a replaced kubeconfig needs a new client.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::access::Access;

/// The minimum time between two replacements.
const PAUSE: Duration = Duration::from_secs(10);

/// How long before the credentials expire the client is replaced.
const AHEAD: SignedDuration = SignedDuration::from_secs(60);

pub(super) struct RenewingClient {
    access: Option<Access>,
    state: Mutex<ClientState>,
    /// Held while a client is made, which takes as long as the credential plugin. Requests with the
    /// current client do not wait for it.
    renewal: Mutex<()>,
}

struct ClientState {
    client: Client,
    made: Instant,
    failure: Option<String>,
}

impl RenewingClient {
    /// A client that is never replaced.
    pub(super) fn fixed(client: Client) -> Self {
        Self {
            access: None,
            state: Mutex::new(ClientState {
                client,
                made: Instant::now(),
                failure: None,
            }),
            renewal: Mutex::default(),
        }
    }

    /// A client that is replaced when necessary.
    pub(super) fn renewable(client: Client, access: &Access) -> Self {
        Self {
            access: Some(access.clone()),
            ..Self::fixed(client)
        }
    }

    /// Returns the current client, or a new one if the credentials of the current one are about to
    /// expire.
    ///
    /// # Errors
    /// The credentials have expired and cannot be renewed. The error is the reason.
    pub(super) async fn current(&self) -> Result<Client, String> {
        let (client, ends) = self.present().await;
        let Some(ends) = ends.filter(|ends| *ends - AHEAD <= Timestamp::now()) else {
            return Ok(client);
        };
        let is_over = ends <= Timestamp::now();
        if !is_over && self.renewal.try_lock().is_err() {
            return Ok(client);
        }
        self.renew().await;
        let (client, ends) = self.present().await;
        if ends.is_none_or(|ends| Timestamp::now() < ends) {
            return Ok(client);
        }
        let failure = self.failure().await;
        Err(failure.unwrap_or_else(|| "the credentials have expired".to_owned()))
    }

    /// Makes a new client from the files and commands as they are now, unless that was just done.
    /// Keeps the current client if this fails.
    pub(super) async fn renew(&self) {
        let Some(access) = &self.access else { return };
        let _alone = self.renewal.lock().await;
        if self.state.lock().await.made.elapsed() < PAUSE {
            return;
        }
        let made = access.client().await;
        let mut state = self.state.lock().await;
        state.made = Instant::now();
        match made {
            Ok((client, _server)) => {
                state.client = client;
                state.failure = None;
            }
            Err(error) => state.failure = Some(error.to_string()),
        }
    }

    /// Why the last attempt to make a client failed.
    pub(super) async fn failure(&self) -> Option<String> {
        self.state.lock().await.failure.clone()
    }

    async fn present(&self) -> (Client, Option<Timestamp>) {
        let state = self.state.lock().await;
        (state.client.clone(), *state.client.valid_until())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use serde_json::json;

    use super::*;

    /// A kubeconfig whose plugin runs this script.
    fn access(folder: &tempfile::TempDir, script: &str) -> Access {
        let path = folder.path().join("config");
        let exec = json!({"command": "sh", "args": ["-c", script], "interactiveMode": "Never"});
        let config = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"exec": exec}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://10.0.0.1"}}],
        });
        std::fs::write(&path, config.to_string()).unwrap();
        Access::kubeconfig(&path, "test")
    }

    /// A client whose credentials expire in `seconds`, and are renewed by `script`.
    async fn ending(folder: &tempfile::TempDir, seconds: i64, script: &str) -> RenewingClient {
        let ends = Timestamp::now() + SignedDuration::from_secs(seconds);
        let mut config = kube::Config::new("http://10.0.0.1".parse().unwrap());
        config.root_cert = Some(Vec::new());
        let client = Client::try_from(config).unwrap();
        let client = client.with_valid_until(Some(ends));
        let client = RenewingClient::renewable(client, &access(folder, script));
        client.state.lock().await.made -= PAUSE;
        client
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_does_not_wait_for_a_plugin_that_another_waits_for() {
        let folder = tempfile::tempdir().unwrap();
        let renewing = ending(&folder, 30, "sleep 1000000; true").await;
        let begun = Instant::now();
        let mut waits = pin!(renewing.current());
        let first = std::future::poll_fn(|context| Poll::Ready(waits.as_mut().poll(context))).await;
        assert!(first.is_pending());
        assert!(renewing.current().await.is_ok());
        assert_eq!(
            begun.elapsed(),
            Duration::ZERO,
            "the request did not wait for the deadline"
        );
        assert!(
            waits.await.is_ok(),
            "the current credentials are valid for 30 s more"
        );
        let failure = renewing.failure().await.unwrap();
        assert!(
            failure.contains("did not end within 30 s and was killed"),
            "{failure}"
        );
    }

    #[tokio::test]
    async fn expired_credentials_are_renewed_or_the_error_has_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let fresh = "echo 'status: {token: b, expirationTimestamp: 2100-01-01T00:00:00Z}'";
        let renewing = ending(&folder, -1, fresh).await;
        let client = renewing.current().await.unwrap();
        assert!(
            client
                .valid_until()
                .is_some_and(|ends| ends > Timestamp::now())
        );
        assert_eq!(renewing.failure().await, None);
        let renewing = ending(&folder, -1, "echo no >&2; exit 1").await;
        let why = renewing.current().await.err().unwrap();
        assert!(why.contains("failed (exit status: 1): no"), "{why}");
    }
}
