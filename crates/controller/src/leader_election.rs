//! Leader election: the loop that reads and writes the Lease for an [`Election`].

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_io::{Access, ApiError, Connection, Fault};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::lease::{Election, LeaseRequest, Record, Response};
use crate::log_once::LogOnce;

/// Limit of one request, so that the holder can send another before [`crate::lease::DEADLINE`].
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// How long a stopped replica waits for the response to a renewal, and then for the release.
const STOP_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct LeaseIdentity {
    pub namespace: String,
    pub name: String,
    /// The holder identity of this replica; must be unique.
    pub me: String,
}

/// Runs the election in its own thread, so that no computation of this process delays a renewal.
#[derive(Debug)]
pub struct ElectionThread {
    stop: watch::Sender<bool>,
    end: Option<oneshot::Receiver<anyhow::Result<()>>>,
}

impl ElectionThread {
    /// Starts the thread. `connection` counts the requests; `lead` receives the time until which
    /// this replica leads.
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
            // The receiver is dropped when the process exits.
            drop(end.send(done));
        };
        let thread = std::thread::Builder::new().name("election".to_owned());
        thread.spawn(work).context("starting a thread")?;
        Ok(Self {
            stop,
            end: Some(ends),
        })
    }

    /// Waits until the thread exits. Without [`ElectionThread::stop`] it exits only after an error.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        let Some(end) = &mut self.end else {
            return Ok(());
        };
        let ended = end.await;
        self.end = None;
        ended.context("the election thread exited")?
    }

    /// Releases the Lease if it is held, and stops the thread.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.ended().await
    }
}

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

/// Runs until `stop`, then releases the Lease if it is held. `lead` receives the time until which
/// this replica leads.
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
        if let LeaseRequest::Wait(until) = request {
            tokio::select! {
                () = sleep_until(epoch + until) => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        let response = tokio::select! {
            response = send_within(REQUEST_LIMIT, &connection, &identity, &request, &mut log) => response,
            () = stop_limit(&mut stop) => break,
        };
        election.handle(epoch.elapsed(), response);
        let until = election.leads_until(epoch.elapsed());
        lead.send_replace(until.map(|until| epoch + until));
    }
    lead.send_replace(None);
    if let Some(record) = election.release() {
        let request = LeaseRequest::Replace(record);
        let response = send_within(STOP_LIMIT, &connection, &identity, &request, &mut log).await;
        if matches!(response, Response::Written(_)) {
            tracing::info!("released the lease");
        } else {
            tracing::warn!("failed to release the lease; another replica takes it when it expires");
        }
    }
}

/// Waits until this replica is stopped, and then for [`STOP_LIMIT`]. The response to a renewal has the version that the
/// release needs.
async fn stop_limit(stop: &mut watch::Receiver<bool>) {
    // The sender is dropped when the process exits.
    drop(stop.changed().await);
    sleep(STOP_LIMIT).await;
}

/// Sends the request. It has failed if it takes longer than `limit`.
async fn send_within(
    limit: Duration,
    connection: &Connection,
    identity: &LeaseIdentity,
    request: &LeaseRequest,
    log: &mut LogOnce,
) -> Response {
    let sent = timeout(limit, send(connection, identity, request, log)).await;
    sent.unwrap_or_else(|_elapsed| {
        let ms = limit.as_millis();
        log.failed(&format!(
            "no response to a request for the lease within {ms} ms"
        ));
        Response::Failed
    })
}

async fn send(
    connection: &Connection,
    identity: &LeaseIdentity,
    request: &LeaseRequest,
    log: &mut LogOnce,
) -> Response {
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        identity.namespace
    );
    let lease_path = format!("{path}/{}", identity.name);
    let write = |record: &Record| serde_json::to_value(lease(identity, record)).unwrap_or_default();
    let done = match request {
        LeaseRequest::Wait(_) => return Response::Failed,
        LeaseRequest::Get => connection.get(&lease_path).await,
        LeaseRequest::Create(record) => connection.create(&path, &write(record)).await,
        LeaseRequest::Replace(record) => connection.replace(&lease_path, &write(record)).await,
    };
    let object = match done {
        Ok(object) => object,
        Err(error) => {
            let response = failed(&error, request);
            if matches!(response, Response::Failed) {
                log.failed(&describe(&error, request));
            } else {
                log.succeeded();
            }
            return response;
        }
    };
    match serde_json::from_value::<Lease>(object) {
        Ok(lease) => {
            log.succeeded();
            let record = record(lease);
            if matches!(request, LeaseRequest::Get) {
                Response::Found(record)
            } else {
                Response::Written(record.version)
            }
        }
        Err(error) => {
            log.failed(&format!("cannot read the lease {lease_path}: {error}"));
            Response::Failed
        }
    }
}

fn failed(error: &ApiError, request: &LeaseRequest) -> Response {
    match error.fault {
        Fault::NotFound => match request {
            LeaseRequest::Get => Response::Missing,
            LeaseRequest::Replace(_) => Response::Lost,
            // The namespace does not exist.
            LeaseRequest::Create(_) | LeaseRequest::Wait(_) => Response::Failed,
        },
        Fault::Conflict | Fault::AlreadyExists => Response::Lost,
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
        | Fault::DecodeError
        | Fault::Credentials
        | Fault::Refused => Response::Failed,
    }
}

/// Returns the text for the log. The remedy of another 404 is to install a CRD.
fn describe(error: &ApiError, request: &LeaseRequest) -> String {
    if error.fault != Fault::NotFound || !matches!(request, LeaseRequest::Create(_)) {
        return error.to_string();
    }
    let namespace = &error.target.namespace;
    let message = &error.message;
    format!(
        "cannot create the lease in the namespace {namespace}, so no replica leads: {message}; create the namespace, or correct --namespace"
    )
}

fn record(lease: Lease) -> Record {
    let spec = lease.spec.unwrap_or_default();
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(seconds.try_into().unwrap_or_default()),
        transitions: spec.lease_transitions.unwrap_or_default(),
        version: lease.metadata.resource_version.unwrap_or_default(),
    }
}

fn lease(identity: &LeaseIdentity, record: &Record) -> Lease {
    let version = (!record.version.is_empty()).then(|| record.version.clone());
    Lease {
        metadata: ObjectMeta {
            name: Some(identity.name.clone()),
            namespace: Some(identity.namespace.clone()),
            resource_version: version,
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(record.holder.clone()),
            lease_duration_seconds: record.duration.as_secs().try_into().ok(),
            lease_transitions: Some(record.transitions),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    }
}
