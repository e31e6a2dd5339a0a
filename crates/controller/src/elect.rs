//! The Lease in the API server: reads, writes, and the loop around [`Election`].

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Context as _;
use cluster::api::{Access, ApiError, Connection, Fault};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::lease::{Ask, Election, Heard, Record};
use crate::trouble::Trouble;
use crate::world::put;

/// Where the Lease is, and who asks for it.
#[derive(Debug, Clone)]
pub struct Seat {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// This replica, by a name that no other has.
    pub me: String,
}

/// An election that goes on in a thread of its own, so that nothing that this process computes delays a renewal.
#[derive(Debug)]
pub struct Running {
    stop: watch::Sender<bool>,
    /// Nothing once its end is known.
    end: Option<oneshot::Receiver<anyhow::Result<()>>>,
}

impl Running {
    /// Begins. `connection` counts the requests; `lead` is told until when this replica leads.
    pub fn start(
        access: Access,
        connection: Connection,
        seat: Seat,
        lead: watch::Sender<Option<Instant>>,
    ) -> anyhow::Result<Self> {
        let (stop, stops) = watch::channel(false);
        let (end, ends) = oneshot::channel();
        let work = move || {
            let done = alone(&access, &connection, seat, lead, stops);
            // Nobody waits any more where the process ends.
            drop(end.send(done));
        };
        let thread = std::thread::Builder::new().name("election".to_owned());
        thread.spawn(work).context("starting a thread")?;
        Ok(Self {
            stop,
            end: Some(ends),
        })
    }

    /// Waits until it has ended, which it does by itself only in trouble.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        let Some(end) = &mut self.end else {
            return Ok(());
        };
        let ended = end.await;
        self.end = None;
        ended.context("its thread ended")?
    }

    /// Gives the Lease up, if it is held.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.ended().await
    }
}

/// Takes part in a runtime of its own.
fn alone(
    access: &Access,
    connection: &Connection,
    seat: Seat,
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
        elect(own, seat, lead, stop).await;
        Ok(())
    })
}

/// Takes part until `stop` says so; then gives the Lease up, if it is held. Tells `lead` until when this replica leads.
async fn elect(
    connection: Connection,
    seat: Seat,
    lead: watch::Sender<Option<Instant>>,
    mut stop: watch::Receiver<bool>,
) {
    let epoch = Instant::now();
    let mut election = Election::new(&seat.me);
    let mut trouble = Trouble::default();
    while !*stop.borrow() {
        let ask = election.ask(epoch.elapsed());
        if let Ask::Wait(until) = ask {
            tokio::select! {
                () = tokio::time::sleep_until(epoch + until) => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        let heard = answer(&connection, &seat, &ask, &mut trouble).await;
        election.hear(epoch.elapsed(), heard);
        let until = election.leads_until(epoch.elapsed());
        lead.send_replace(until.map(|until| epoch + until));
    }
    lead.send_replace(None);
    if let Some(record) = election.release() {
        let heard = answer(&connection, &seat, &Ask::Replace(record), &mut trouble).await;
        if matches!(heard, Heard::Written(_)) {
            tracing::info!("the lease is given up");
        } else {
            tracing::warn!(
                "the lease could not be given up; another replica takes it when it has run out"
            );
        }
    }
}

async fn answer(connection: &Connection, seat: &Seat, ask: &Ask, trouble: &mut Trouble) -> Heard {
    let path = format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        seat.namespace
    );
    let one = format!("{path}/{}", seat.name);
    let (done, is_read) = match ask {
        Ask::Wait(_) => return Heard::Failed,
        Ask::Get => (connection.get(&one).await, true),
        Ask::Create(record) => (connection.create(&path, &object(seat, record)).await, false),
        Ask::Replace(record) => (connection.replace(&one, &object(seat, record)).await, false),
    };
    let heard = match &done {
        Ok(object) if is_read => Heard::Found(record(object)),
        Ok(object) => Heard::Written(record(object).version),
        Err(error) => failed(error, is_read),
    };
    match &done {
        Err(error) if matches!(heard, Heard::Failed) => trouble.lasts(error),
        _ => trouble.is_over(),
    }
    heard
}

fn failed(error: &ApiError, is_read: bool) -> Heard {
    match error.fault {
        Fault::NotFound if is_read => Heard::Missing,
        Fault::Conflict | Fault::AlreadyExists | Fault::NotFound => Heard::Lost,
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
        | Fault::Refused => Heard::Failed,
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

fn object(seat: &Seat, record: &Record) -> Value {
    let now = Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string();
    let mut metadata = json!({ "name": seat.name, "namespace": seat.namespace });
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
