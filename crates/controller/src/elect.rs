//! The Lease in the API server: reads, writes, and the loop around [`Election`].

use std::time::Duration;

use cluster::api::{ApiError, Connection, Fault};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
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

/// Takes part until `stop` says so; then gives the Lease up, if it is held. Tells `lead` until when this replica leads.
pub async fn elect(
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
        _ => Heard::Failed,
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
