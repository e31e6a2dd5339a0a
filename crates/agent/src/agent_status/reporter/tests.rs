//! Tests the reporter with a small API server whose answers the test sets.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::agent_status::compare::Difference;
use crate::node_warning::{self, Topic};
use crate::state::{Query, channel};

/// The requests that the server received, and its next answers.
#[derive(Debug, Default)]
struct Script {
    asked: Vec<String>,
    answers: VecDeque<(u16, Value)>,
}

type Shared = Arc<Mutex<Script>>;

fn script(shared: &Shared) -> MutexGuard<'_, Script> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(shared): State<Shared>, request: Request) -> (StatusCode, Json<Value>) {
    let mut script = script(&shared);
    let path = request.uri().path().rsplit_once("v1").unwrap().1;
    let (method, path) = (request.method().clone(), path.trim_start_matches("alpha1"));
    script.asked.push(format!("{method} {path}"));
    let (code, body) = script.answers.pop_front().unwrap_or((500, Value::Null));
    (StatusCode::from_u16(code).unwrap(), Json(body))
}

/// A reporter with a server and a loop that has programmed everything.
async fn reporter(answers: &[(u16, Value)]) -> (Reporter, Shared) {
    let shared = Shared::default();
    script(&shared).answers.extend(answers.iter().cloned());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let router = Router::new()
        .fallback(answer)
        .with_state(Arc::clone(&shared));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: it, contexts: [{{name: it, context: {{cluster: it, user: it}}}}], clusters: [{{name: it, cluster: {{server: 'http://{server}'}}}}], users: [{{name: it, user: {{}}}}]}}"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let access = Access::kubeconfig(&kubeconfig, "tests");
    let connection = kube_io::Connection::open(&access).await.unwrap();
    let (watch, _receiver) =
        cluster::api::follow(connection.clone(), cluster::api::NodeSource::Whole);
    let sync_status = watch.sync_status().cloned().unwrap();
    let (handle, mut ends) = channel();
    ends.pulse.send_modify(|pulse| pulse.ready = true);
    tokio::spawn(async move {
        while let Some(query) = ends.queries.recv().await {
            if let Query::DecisionSummary(reply) = query {
                drop(reply.send(DecisionSummary::default()));
            }
        }
        drop(ends.pulse);
    });
    let client = StatusClient::new(connection, "n1".into());
    (Reporter::new(client, handle, sync_status), shared)
}

/// Checks that the next turn sends no request and that nothing is due soon.
async fn rests(reporter: &mut Reporter, shared: &Shared) {
    let asked = script(shared).asked.len();
    let until = reporter.turn().await.unwrap().unwrap();
    assert!(until > Duration::from_secs(10), "{until:?}");
    assert_eq!(script(shared).asked.len(), asked);
}

fn not_found() -> (u16, Value) {
    (
        404,
        json!({ "kind": "Status", "code": 404, "reason": "NotFound", "message": "not found" }),
    )
}

fn own_node() -> (u16, Value) {
    (
        200,
        json!({ "items": [{ "metadata": { "uid": "1-2-3" } }] }),
    )
}

#[tokio::test]
async fn a_report_is_written_once_and_not_again() {
    let fine = (200, json!({}));
    let answers = [not_found(), own_node(), fine.clone(), fine];
    let (mut reporter, shared) = reporter(&answers).await;
    reporter.turn().await.unwrap();
    let one = "/topologyagents/n1";
    let asked = [
        format!("GET {one}"),
        "GET /nodes".to_owned(),
        "POST /topologyagents".to_owned(),
        format!("PATCH {one}/status"),
    ];
    assert_eq!(script(&shared).asked, asked);
    assert_eq!(reporter.trouble, None);
    rests(&mut reporter, &shared).await;
}

#[tokio::test]
async fn an_agent_that_restarts_reads_its_report_and_writes_nothing() {
    let report = compose(
        &Pulse {
            ready: true,
            ..Pulse::default()
        },
        AgentPhase::Serving,
        DecisionSummary::default(),
    );
    let (mut reporter, shared) = reporter(&[(200, json!({ "status": report }))]).await;
    assert!(reporter.turn().await.unwrap().unwrap() >= LOOK);
    assert_eq!(script(&shared).asked, ["GET /topologyagents/n1"]);
}

#[tokio::test]
async fn without_a_crd_or_a_permission_one_line_is_logged_and_requests_are_rare() {
    let forbidden = (
        403,
        json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": "no" }),
    );
    let no_nodes = (200, json!({ "items": [] }));
    let cases = [
        (
            vec![not_found(), own_node(), not_found()],
            "TopologyAgent is not installed",
        ),
        (vec![not_found(), no_nodes], "this node has no Node object"),
        (vec![not_found(), forbidden], "Forbidden"),
        (vec![], "Unavailable"),
    ];
    for (answers, words) in cases {
        let (mut reporter, shared) = reporter(&answers).await;
        reporter.turn().await.unwrap();
        let trouble = reporter.trouble.clone().unwrap();
        assert!(trouble.starts_with(words), "{trouble}");
        assert!(!reporter.is_news(&trouble), "it was logged");
        rests(&mut reporter, &shared).await;
    }
}

/// The API server answers so to reads and writes for a while after `kubectl apply -k` installed the
/// CRD.
#[tokio::test]
async fn the_reporter_waits_for_a_new_crd_without_a_log_line() {
    let initializing = || {
        let message = "storage is (re)initializing";
        (
            429,
            json!({ "kind": "Status", "code": 429, "reason": "TooManyRequests", "message": message }),
        )
    };
    let (mut reporter, _shared) = reporter(&vec![initializing(); 6]).await;
    for failures in 1..=6 {
        reporter.look = Duration::ZERO;
        reporter.turn().await.unwrap();
        assert_eq!(reporter.failures, failures);
        assert_eq!(reporter.trouble.is_some(), failures > 5, "{failures}");
    }
    let (mut reporter, _shared) = self::reporter(&[not_found(), own_node(), initializing()]).await;
    reporter.turn().await.unwrap();
    assert_eq!((reporter.failures, reporter.trouble), (1, None));
}

#[tokio::test]
async fn the_old_report_is_read_before_the_first_write() {
    let old = AgentStatus {
        version: "0.0.1".to_owned(),
        ..AgentStatus::default()
    };
    let busy = json!({ "kind": "Status", "code": 503, "message": "etcd is away" });
    let answers = [(503, busy), (200, json!({ "status": old }))];
    let (mut reporter, shared) = reporter(&answers).await;
    let again = reporter.turn().await.unwrap().unwrap();
    assert_eq!(script(&shared).asked, ["GET /topologyagents/n1"]);
    assert!(again < LOOK, "{again:?}");
    reporter.look = Duration::ZERO;
    reporter.rate_limit = RateLimit::default();
    reporter.turn().await.unwrap();
    assert_eq!(reporter.written, Some(old), "until the write succeeds");
    let patch = "PATCH /topologyagents/n1/status";
    assert_eq!(
        script(&shared).asked[1..],
        ["GET /topologyagents/n1", patch]
    );
}

#[test]
fn the_phase_is_that_of_the_worst_part() {
    let now = Timestamp::from_second(1_000_000).unwrap();
    let input = |phase, silence| ResourceStatus {
        phase,
        last_received: now.checked_sub(SignedDuration::from_secs(silence)).ok(),
        ..ResourceStatus::default()
    };
    let serving = Pulse {
        ready: true,
        ..Pulse::default()
    };
    let failing = Pulse {
        waiting: 1,
        ..serving.clone()
    };
    let cases = [
        (Pulse::default(), vec![], AgentPhase::Starting),
        (
            serving.clone(),
            vec![input(Reading::Listing, 1)],
            AgentPhase::Starting,
        ),
        (
            serving.clone(),
            vec![input(Reading::Following, 999), input(Reading::Stale, 60)],
            AgentPhase::Serving,
        ),
        (
            serving,
            vec![input(Reading::Stale, 200)],
            AgentPhase::Degraded,
        ),
        (failing, vec![], AgentPhase::Degraded),
    ];
    for (pulse, inputs, wanted) in cases {
        assert_eq!(phase(&pulse, &inputs, now), wanted, "{inputs:?}");
    }
}

#[test]
fn w_31_the_report_has_the_warnings_of_the_node_in_bounded_space() {
    let warning = |text: String| node_warning::NodeWarning {
        topic: Topic::OtherProxy,
        text,
    };
    let report = |texts: Vec<String>| {
        let pulse = Pulse {
            node_warnings: texts.into_iter().map(warning).collect(),
            ..Pulse::default()
        };
        compose(&pulse, AgentPhase::Serving, DecisionSummary::default())
    };
    let one = report(vec![
        "a kube-proxy in ipvs mode runs on this node".to_owned(),
    ]);
    assert_eq!(one.warnings[0].code, "OtherProxy");
    assert!(one.warnings[0].message.contains("ipvs mode"));
    let again = report(vec!["a kube-proxy in iptables mode".to_owned()]);
    let none = report(Vec::new());
    assert_eq!(difference(&one, Some(&again)), Difference::Amounts);
    assert_eq!(difference(&one, Some(&none)), Difference::News);
    let many = report(vec!["\u{1}".repeat(1_000); 100]);
    assert!(!many.warnings.is_empty());
    let room = u64::try_from(MAX_WARNING_BYTES).unwrap();
    assert!(length(&many) <= length(&none) + room);
}

#[test]
fn d13_claims_of_another_kubelet_do_not_change_this_nodes_report() {
    let report = |topics: &[Topic]| {
        let warning = |topic: &Topic| node_warning::NodeWarning {
            topic: *topic,
            text: "10.96.0.1 is inside a Service range".to_owned(),
        };
        let pulse = Pulse {
            node_warnings: topics.iter().map(warning).collect(),
            ..Pulse::default()
        };
        compose(&pulse, AgentPhase::Serving, DecisionSummary::default())
    };
    let (none, others) = (report(&[]), report(&[Topic::NodeClaim]));
    assert_eq!(difference(&others, Some(&none)), Difference::None);
    let own = report(&[Topic::OwnClaim, Topic::NodeClaim]);
    assert_eq!(own.warnings.len(), 1);
    assert_eq!(own.warnings[0].code, "OwnClaim");
}
