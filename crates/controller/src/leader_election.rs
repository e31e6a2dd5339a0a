//! Leader election: the loop that reads and writes the Lease for an [`Election`].

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use kube_io::{Access, ApiError, Connection, Fault};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::lease::{Election, Record, Request, Response};
use crate::log_once::LogOnce;
use crate::state::put;

/// Which Lease, and which replica.
#[derive(Debug, Clone)]
pub struct LeaseIdentity {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The holder identity of this replica, which no other has.
    pub me: String,
}

/// Runs the election in a thread of its own, so that no computation of this process delays a renewal.
#[derive(Debug)]
pub struct ElectionThread {
    stop: watch::Sender<bool>,
    /// `None` once the thread has ended.
    end: Option<oneshot::Receiver<anyhow::Result<()>>>,
}

impl ElectionThread {
    /// Starts the thread. `connection` counts the requests; `lead` receives until when this replica leads.
    pub fn start(
        access: Access,
        connection: Connection,
        identity: LeaseIdentity,
        lead: watch::Sender<Option<Instant>>,
    ) -> anyhow::Result<Self> {
        let (stop, stops) = watch::channel(false);
        let (end, ends) = oneshot::channel();
        let work = move || {
            let done = run_thread(&access, &connection, identity, lead, stops);
            // The receiver is gone when the process ends.
            drop(end.send(done));
        };
        let thread = std::thread::Builder::new().name("election".to_owned());
        thread.spawn(work).context("starting a thread")?;
        Ok(Self {
            stop,
            end: Some(ends),
        })
    }

    /// Waits until the thread ends. Without [`ElectionThread::stop`] it ends only by an error.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        let Some(end) = &mut self.end else {
            return Ok(());
        };
        let ended = end.await;
        self.end = None;
        ended.context("its thread ended")?
    }

    /// Releases the Lease if it is held, and ends the thread.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.ended().await
    }
}

/// Runs the election in a runtime of its own.
fn run_thread(
    access: &Access,
    connection: &Connection,
    identity: LeaseIdentity,
    lead: watch::Sender<Option<Instant>>,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(async {
        // A connection works in the runtime in which it was opened.
        let own = connection.beside(access).await?;
        elect(own, identity, lead, stop).await;
        Ok(())
    })
}

/// Runs until `stop`, then releases the Lease if it is held. Sends until when this replica leads to `lead`.
async fn elect(
    connection: Connection,
    identity: LeaseIdentity,
    lead: watch::Sender<Option<Instant>>,
    mut stop: watch::Receiver<bool>,
) {
    let epoch = Instant::now();
    let mut election = Election::new(&identity.me);
    let mut log = LogOnce::default();
    while !*stop.borrow() {
        let request = election.next_request(epoch.elapsed());
        if let Request::Wait(until) = request {
            tokio::select! {
                () = tokio::time::sleep_until(epoch + until) => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        let response = send(&connection, &identity, &request, &mut log).await;
        election.handle(epoch.elapsed(), response);
        let until = election.leads_until(epoch.elapsed());
        lead.send_replace(until.map(|until| epoch + until));
    }
    lead.send_replace(None);
    if let Some(record) = election.release() {
        let response = send(&connection, &identity, &Request::Replace(record), &mut log).await;
        if matches!(response, Response::Written(_)) {
            tracing::info!("released the lease");
        } else {
            tracing::warn!("failed to release the lease; another replica takes it when it expires");
        }
    }
}

async fn send(
    connection: &Connection,
    identity: &LeaseIdentity,
    request: &Request,
    log: &mut LogOnce,
) -> Response {
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        identity.namespace
    );
    let one = format!("{path}/{}", identity.name);
    let (done, is_read) = match request {
        Request::Wait(_) => return Response::Failed,
        Request::Get => (connection.get(&one).await, true),
        Request::Create(record) => (
            connection.create(&path, &object(identity, record)).await,
            false,
        ),
        Request::Replace(record) => (
            connection.replace(&one, &object(identity, record)).await,
            false,
        ),
    };
    let response = match &done {
        Ok(object) if is_read => Response::Found(record(object)),
        Ok(object) => Response::Written(record(object).version),
        Err(error) => failed(error, is_read),
    };
    match &done {
        Err(error) if matches!(response, Response::Failed) => log.failed(error),
        _ => log.succeeded(),
    }
    response
}

fn failed(error: &ApiError, is_read: bool) -> Response {
    match error.fault {
        Fault::NotFound if is_read => Response::Missing,
        Fault::Conflict | Fault::AlreadyExists | Fault::NotFound => Response::Lost,
        Fault::Unauthorized
        | Fault::Forbidden
        | Fault::OtherVersion
        | Fault::Gone
        | Fault::Invalid
        | Fault::TooManyRequests
        | Fault::Unavailable
        | Fault::Unreachable
        | Fault::Certificate
        | Fault::Timeout
        | Fault::Garbled
        | Fault::Credentials
        | Fault::Refused => Response::Failed,
    }
}

fn record(object: &Value) -> Record {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let number = |path: &str| object.pointer(path).and_then(Value::as_u64);
    Record {
        holder: text("/spec/holderIdentity").unwrap_or_default().to_owned(),
        duration: Duration::from_secs(number("/spec/leaseDurationSeconds").unwrap_or_default()),
        transitions: number("/spec/leaseTransitions").unwrap_or_default(),
        version: text("/metadata/resourceVersion")
            .unwrap_or_default()
            .to_owned(),
    }
}

fn object(identity: &LeaseIdentity, record: &Record) -> Value {
    let now = Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string();
    let mut metadata = json!({ "name": identity.name, "namespace": identity.namespace });
    if !record.version.is_empty() {
        put(&mut metadata, "resourceVersion", record.version.as_str());
    }
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration.as_secs(),
            "leaseTransitions": record.transitions,
            "renewTime": now,
        },
    })
}
