//! A leader and an API server that answers requests for Events late or with an error, in virtual time.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::state::StateOptions;

/// The paths of the writes, in their order.
type Writes = Arc<Mutex<Vec<String>>>;

/// An API server that answers each request for an Event with `code` after `delay`, and accepts other writes at once.
fn server(delay: Duration, code: StatusCode) -> (Connection, Writes) {
    let writes = Writes::default();
    let record = Arc::clone(&writes);
    let answer = move |request: Request| {
        let path = request.uri().path().to_owned();
        let is_event = path.ends_with("/events");
        record.lock().unwrap().push(path);
        async move {
            let body = axum::body::to_bytes(request.into_body(), 65_536).await;
            if is_event {
                sleep(delay).await;
                return (code, body.unwrap());
            }
            (StatusCode::OK, body.unwrap())
        }
    };
    let client = kube::Client::new(Router::new().fallback(answer), "default");
    (Connection::of_client(client), writes)
}

/// A state with one Node, and a fallback of a Service in each of so many namespaces.
fn state(namespaces: usize) -> State {
    let mut state = State::new(StateOptions::default());
    let metadata = json!({ "name": "n1" });
    state.apply(Collection::Nodes, json!({ "metadata": metadata }));
    let fallbacks = (0..namespaces).map(|number| {
        json!({
            "service": format!("ns{number:02}/cart"), "reason": "Panic", "from": "Prefer", "to": "Uniform",
            "since": Timestamp::now().to_string(),
        })
    });
    let status = json!({ "fallbacks": fallbacks.collect::<Value>() });
    let agent = json!({ "metadata": metadata, "status": status });
    state.apply(Collection::Agents, agent);
    state
}

/// A leader that has observed a cluster without fallbacks, and then this state.
fn leader(connection: Connection, state: State) -> Loop {
    let mut event_recorder = EventRecorder::new("me");
    event_recorder.observe(0, &BTreeMap::new(), &BTreeSet::new());
    let (_, leads) = watch::channel(Some(Instant::now() + Duration::from_secs(3600)));
    Loop {
        connection,
        state,
        budget: Budget::new(Duration::ZERO),
        event_recorder,
        epoch: Instant::now(),
        followed: Vec::new(),
        write_hints: false,
        unlisted: BTreeSet::new(),
        leads,
        ready: Ready::default(),
        metrics: Metrics::default(),
        write_log: LogOnce::default(),
        event_log: LogOnce::default(),
        left_out: BTreeSet::new(),
        unread: BTreeSet::new(),
        conflicts: ConflictLog::default(),
        dirty: true,
    }
}

fn event(number: usize) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/ns{number:02}/events")
}

#[tokio::test(start_paused = true)]
async fn events_without_a_response_come_after_other_writes_and_take_one_tick() {
    let (connection, writes) = server(Duration::from_secs(3600), StatusCode::OK);
    let mut leader = leader(connection, state(30));
    let began = Instant::now();
    leader.lead().await;
    assert!(began.elapsed() < 2 * TICK, "{:?}", began.elapsed());
    let map = Collection::Maps.path("", "");
    assert_eq!(*writes.lock().unwrap(), [map, event(0)]);
}

#[tokio::test(start_paused = true)]
async fn slow_events_take_at_most_two_ticks_and_all_are_written() {
    let (connection, writes) = server(TICK * 3 / 10, StatusCode::OK);
    let mut leader = leader(connection, state(30));
    for _ in 0..8 {
        let began = Instant::now();
        leader.lead().await;
        assert!(began.elapsed() < 2 * TICK, "{:?}", began.elapsed());
    }
    let events: Vec<String> = (0..30).map(event).collect();
    assert_eq!(writes.lock().unwrap()[1..], events);
}

#[tokio::test(start_paused = true)]
async fn after_an_event_that_fails_the_next_turn_begins_with_another_namespace() {
    let (connection, writes) = server(Duration::ZERO, StatusCode::SERVICE_UNAVAILABLE);
    let mut leader = leader(connection, state(3));
    for _ in 0..4 {
        leader.lead().await;
    }
    let events = [0, 1, 2, 0].map(event);
    assert_eq!(writes.lock().unwrap()[1..], events);
}
