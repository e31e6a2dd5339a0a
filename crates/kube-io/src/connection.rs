//! Sends requests to the API server. Takes paths and JSON; returns JSON, a body or a typed error.

mod body;
mod inflate;
mod peers;
mod renew;

use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::access::{Access, AccessError};
use crate::api_groups::ApiGroups;
use crate::error::{self, ApiError, Fault};
use crate::meter::{Count, Meter};
use crate::path::{Target, Verb};

pub(crate) use body::Chunks;
use body::PATIENCE;
use peers::Peers;
use renew::RenewingClient;

/// The default of the headers `Accept` and `Content-Type`.
const JSON: &str = "application/json";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patch<'a> {
    /// RFC 7386: a value replaces, `null` removes.
    Merge,
    /// Server-side apply: the desired fields, owned by `manager`.
    Apply {
        manager: &'a str,
        /// Whether to take over fields that another manager owns.
        force: bool,
    },
}

/// A connection to the API server. Cheap to clone. Clones share their counters.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    client: RenewingClient,
    meter: Arc<Meter>,
    groups: ApiGroups,
    peers: Peers,
}

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) verb: Verb,
    /// The path with its query.
    pub(crate) path: &'a str,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

impl<'a> Call<'a> {
    pub(crate) fn bare(verb: Verb, path: &'a str) -> Self {
        Self {
            verb,
            path,
            accept: JSON,
            content_type: JSON,
            body: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.shared.server)
    }
}

impl Connection {
    /// Finds address and credentials. Sends no request.
    ///
    /// Must be called and used within the same tokio runtime.
    pub async fn open(access: &Access) -> Result<Self, AccessError> {
        Self::counting(access, Arc::default()).await
    }

    /// Opens a connection for another runtime, with the same counters.
    pub async fn beside(&self, access: &Access) -> Result<Self, AccessError> {
        Self::counting(access, Arc::clone(&self.shared.meter)).await
    }

    async fn counting(access: &Access, meter: Arc<Meter>) -> Result<Self, AccessError> {
        let (client, server) = access.client().await?;
        let client = RenewingClient::renewable(client, access);
        Ok(Self::new(server, client, meter))
    }

    /// Wraps a client. Its credentials are not renewed.
    pub fn of_client(client: Client) -> Self {
        let client = RenewingClient::fixed(client);
        Self::new("in-process".to_owned(), client, Arc::default())
    }

    fn new(server: String, client: RenewingClient, meter: Arc<Meter>) -> Self {
        Self {
            shared: Arc::new(Shared {
                server,
                client,
                meter,
                groups: ApiGroups::default(),
                peers: Peers::default(),
            }),
        }
    }

    /// The API groups that were read after a 404.
    pub(crate) fn groups(&self) -> &ApiGroups {
        &self.shared.groups
    }

    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// The counters of requests and bytes.
    pub fn count(&self) -> Count {
        self.shared.meter.read()
    }

    /// Receives the addresses that requests were sent to, at most 16.
    pub fn peers(&self) -> watch::Receiver<Vec<SocketAddr>> {
        self.shared.peers.subscribe()
    }

    /// Reads one object.
    pub async fn get(&self, path: &str) -> Result<Value, ApiError> {
        self.value(Call::bare(Verb::Get, path)).await
    }

    /// Reads a collection. The query of `path` selects and pages.
    pub async fn list(&self, path: &str) -> Result<Value, ApiError> {
        self.value(Call::bare(Verb::List, path)).await
    }

    /// Creates an object in the collection at `path`.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.write(Verb::Create, path, JSON, object).await
    }

    /// Replaces the object at `path`. Fails with a conflict if `resourceVersion` is not the current
    /// one.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.write(Verb::Update, path, JSON, object).await
    }

    /// Changes the object at `path`, or its `/status`.
    pub async fn patch(
        &self,
        path: &str,
        how: Patch<'_>,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let (path, content_type) = match how {
            Patch::Merge => (path.to_owned(), "application/merge-patch+json"),
            Patch::Apply { manager, force } => {
                let joint = if path.contains('?') { '&' } else { '?' };
                let path = format!("{path}{joint}fieldManager={manager}&force={force}");
                (path, "application/apply-patch+yaml")
            }
        };
        self.write(Verb::Patch, &path, content_type, object).await
    }

    /// Deletes the object at `path`.
    pub async fn delete(&self, path: &str) -> Result<Value, ApiError> {
        self.value(Call::bare(Verb::Delete, path)).await
    }

    async fn write(
        &self,
        verb: Verb,
        path: &str,
        content_type: &'static str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let body = object.to_string().into_bytes();
        self.value(Call {
            verb,
            path,
            accept: JSON,
            content_type,
            body,
        })
        .await
    }

    async fn value(&self, call: Call<'_>) -> Result<Value, ApiError> {
        let (verb, target) = (call.verb, Target::of(call.path));
        let body = self.open_body(call).await?.all().await?;
        serde_json::from_slice(&body)
            .map_err(|error| ApiError::new(verb, &target, Fault::DecodeError, &error))
    }

    /// Sends a request and returns the body of a successful answer as a stream. If one side does
    /// not trust the other, renews the credentials for the next request.
    pub(crate) async fn open_body(&self, call: Call<'_>) -> Result<Chunks, ApiError> {
        let mut opened = self.attempt(call).await;
        if opened
            .as_ref()
            .is_err_and(|error| error.fault.is_of_trust())
        {
            self.shared.client.renew().await;
            if let (Err(error), Some(failure)) = (&mut opened, self.shared.client.failure().await)
                && error.fault != Fault::Credentials
            {
                error.message = format!(
                    "{}; the credentials cannot be renewed: {failure}",
                    error.message
                );
            }
        }
        opened
    }

    async fn attempt(&self, call: Call<'_>) -> Result<Chunks, ApiError> {
        let (verb, target) = (call.verb, Target::of(call.path));
        let answer = self.answer(call, &target).await;
        let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        self.shared.meter.request(verb, &target, code);
        let answer = answer?;
        let retry_after = error::retry_after(&answer);
        let status = answer.status();
        let chunks = Chunks::new(Arc::clone(&self.shared.meter), verb, target.clone(), answer);
        if status.is_success() {
            return Ok(chunks);
        }
        let form = chunks.form();
        let body = chunks.all().await.unwrap_or_default();
        let refused = error::refused(verb, &target, status.as_u16(), form, &body);
        Err(ApiError {
            retry_after: retry_after.or(refused.retry_after),
            ..refused
        })
    }

    async fn answer(
        &self,
        call: Call<'_>,
        target: &Target,
    ) -> Result<http::Response<Body>, ApiError> {
        let verb = call.verb;
        let request = Request::builder()
            .method(verb.method())
            .uri(call.path)
            .header(ACCEPT, call.accept)
            .header(ACCEPT_ENCODING, "gzip")
            .header(CONTENT_TYPE, call.content_type)
            .body(Body::from(call.body));
        let request =
            request.map_err(|error| ApiError::new(verb, target, Fault::Invalid, &error))?;
        let client = self.shared.client.current().await;
        let client = client.map_err(|why| ApiError::new(verb, target, Fault::Credentials, &why))?;
        match timeout(PATIENCE, client.send(request)).await {
            Ok(Ok(answer)) => {
                self.shared.peers.record(&answer);
                Ok(answer)
            }
            Ok(Err(error)) => Err(error::cause::broken(verb, target, &error)),
            Err(_elapsed) => {
                let message = format!("no answer within {} s", PATIENCE.as_secs());
                Err(ApiError::new(verb, target, Fault::Timeout, &message))
            }
        }
    }
}
