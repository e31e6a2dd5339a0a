//! The client, and its replacement when the server does not know us any more, or we the server.
//!
//! Tokens in files and from commands are read anew by the client itself. What it cannot renew is what it was built
//! with: a client certificate, the authority that a kubeconfig trusts, and a kubeconfig that somebody replaced.

use std::time::Duration;

use kube::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api::access::Access;

/// Between two replacements.
const PAUSE: Duration = Duration::from_secs(10);

/// A client and how to make another.
pub(super) struct Credentials {
    access: Option<Access>,
    state: Mutex<State>,
}

struct State {
    client: Client,
    made: Instant,
}

impl Credentials {
    /// A client that stays.
    pub(super) fn fixed(client: Client) -> Self {
        Self {
            access: None,
            state: Mutex::new(State::new(client)),
        }
    }

    /// A client that is replaced when it has to be.
    pub(super) fn renewable(client: Client, access: &Access) -> Self {
        Self {
            access: Some(access.clone()),
            ..Self::fixed(client)
        }
    }

    /// The present client; a new one if the present one's credentials have run out.
    pub(super) async fn client(&self) -> Client {
        let (client, ends) = {
            let state = self.state.lock().await;
            (state.client.clone(), *state.client.valid_until())
        };
        if ends.is_some_and(|ends| ends <= jiff::Timestamp::now()) {
            self.renew().await;
            return self.state.lock().await.client.clone();
        }
        client
    }

    /// Makes a new client from what files and commands say now, unless that was just done. If they say nothing
    /// usable, the present one stays.
    pub(super) async fn renew(&self) {
        let Some(access) = &self.access else { return };
        let mut state = self.state.lock().await;
        if state.made.elapsed() < PAUSE {
            return;
        }
        state.made = Instant::now();
        if let Ok((client, _server)) = access.client().await {
            state.client = client;
        }
    }
}

impl State {
    fn new(client: Client) -> Self {
        Self {
            client,
            made: Instant::now(),
        }
    }
}
