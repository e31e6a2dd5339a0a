//! `/healthz` and `/livez`, as in kube-proxy (KP-HC-01 to KP-HC-05), and `/readyz`.
//!
//! Load balancers and cloud controllers use `/healthz`: "may traffic for Services be sent through this node?". The
//! kubelet uses `/livez`: "does the proxy work?". Both are derived from one [`HealthState`].
//!
//! One thing differs from kube-proxy (`docs/decisions/0003-healthz-before-first-pass.md`): until the first pass is
//! done, `/healthz` returns 503, because a new node would refuse a load balancer's connections (PAIN-16). `/livez`
//! returns 200.

pub(crate) mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::status::CollectionView;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use serde::Serialize;

use crate::metrics::Metrics;
use crate::metrics::record::Probe;
use crate::server_header::mark;

/// How long a change may be pending before the proxy counts as unhealthy: kube-proxy's 2 x 30 s.
pub(crate) const PENDING_LIMIT: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

/// The state that health is derived from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HealthState {
    /// By family (`IPv4`, `IPv6`); empty before the first pass.
    pub families: BTreeMap<&'static str, FamilyHealth>,
    /// Whether the first pass is done; before it the kernel may have no virtual server.
    pub programmed: bool,
    /// Whether external traffic may be sent to this node; `None` if no Node is known.
    pub node_eligible: Option<bool>,
    /// The state of the watches. It is informative only: without its API server a node serves as before.
    pub inputs: Vec<CollectionView>,
}

/// The part of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilyHealth {
    /// When the last pass ended.
    pub last_updated: Timestamp,
    /// When the oldest pending change arrived.
    pub oldest_pending: Option<Timestamp>,
}

/// The body of both responses, with kube-proxy's names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    last_updated: Timestamp,
    current_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_eligible: Option<bool>,
    healthy: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    status: BTreeMap<&'static str, FamilyBody>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<CollectionView>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct FamilyBody {
    last_updated: Timestamp,
    healthy: bool,
}

/// Provides the current state.
pub(crate) trait HealthSource: Send + Sync + 'static {
    fn health_state(&self) -> impl Future<Output = HealthState> + Send;
}

/// The endpoints; `source` is called for each response.
pub(crate) fn router<S: HealthSource>(source: S, metrics: Metrics) -> Router {
    let source = Arc::new(source);
    let answer = move |probe| {
        let (source, metrics) = (Arc::clone(&source), metrics.clone());
        get(move || async move { answer(probe, &source.health_state().await, &metrics) })
    };
    Router::new()
        .route("/healthz", answer(Probe::Healthz))
        .route("/livez", answer(Probe::Livez))
        // kube-proxy does not have this path: if kube-proxy has the port, its responses do not make this agent's pod
        // ready.
        .route("/readyz", answer(Probe::Readyz))
        .layer(map_response(mark))
}

/// The response to one probe.
pub(crate) fn answer(probe: Probe, state: &HealthState, metrics: &Metrics) -> Response {
    let (fine, body) = evaluate(probe, state, Timestamp::now());
    let status = if fine {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    metrics.probed(probe, status.as_u16());
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (
        status,
        headers,
        axum::Json(body).into_response().into_body(),
    )
        .into_response()
}

/// The verdict and the body. `lastUpdated` is the present if all is well, otherwise the latest pass of any family.
/// `healthy` is about the proxy alone, whether or not the node is eligible.
fn evaluate(probe: Probe, state: &HealthState, now: Timestamp) -> (bool, Body) {
    let status: BTreeMap<_, _> = state
        .families
        .iter()
        .map(|(&family, one)| (family, family_body(one, now)))
        .collect();
    let healthy = is_healthy(state, now);
    let eligible = state.node_eligible.unwrap_or(true);
    let (fine, node_eligible) = match probe {
        Probe::Healthz => (healthy && eligible && state.programmed, Some(eligible)),
        // A node that may not receive traffic must not hold up the update of the agents.
        Probe::Readyz => (healthy && state.programmed, None),
        Probe::Livez => (healthy, None),
    };
    let latest = status.values().map(|family| family.last_updated).max();
    let last_updated = latest.filter(|_| !fine).unwrap_or(now);
    (
        fine,
        Body {
            last_updated,
            current_time: now,
            node_eligible,
            healthy,
            status,
            inputs: state.inputs.clone(),
        },
    )
}

/// Whether the proxy works. While it starts no family has begun, and it counts as healthy (KP-HC-03).
pub(crate) fn is_healthy(state: &HealthState, now: Timestamp) -> bool {
    let mut families = state.families.values();
    families.all(|family| family_body(family, now).healthy)
}

/// Healthy: nothing is pending, or the oldest pending change is younger than the limit (strictly, KP-HC-03).
fn family_body(family: &FamilyHealth, now: Timestamp) -> FamilyBody {
    let healthy = family
        .oldest_pending
        .is_none_or(|since| now.duration_since(since) < PENDING_LIMIT);
    FamilyBody {
        last_updated: family.last_updated,
        healthy,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn state(oldest_pending: Option<i64>, node_eligible: Option<bool>) -> HealthState {
        let family = FamilyHealth {
            last_updated: at(100),
            oldest_pending: oldest_pending.map(at),
        };
        HealthState {
            families: BTreeMap::from([("IPv4", family)]),
            programmed: true,
            node_eligible,
            inputs: Vec::new(),
        }
    }

    #[derive(Clone)]
    struct Fixed(HealthState);

    impl HealthSource for Fixed {
        async fn health_state(&self) -> HealthState {
            self.0.clone()
        }
    }

    /// The status line of the response to `GET path`.
    async fn asked(path: &str, state: &HealthState) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(Fixed(state.clone()), Metrics::new());
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        server.abort();
        answer.lines().next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn pain_16_the_pod_is_ready_after_the_first_pass() {
        let starting = HealthState::default();
        assert_eq!(
            asked("/readyz", &starting).await,
            "HTTP/1.0 503 Service Unavailable"
        );
        assert_eq!(asked("/livez", &starting).await, "HTTP/1.0 200 OK");
        let done = state(None, Some(true));
        assert_eq!(asked("/readyz", &done).await, "HTTP/1.0 200 OK");
        let leaving = state(None, Some(false));
        assert_eq!(asked("/readyz", &leaving).await, "HTTP/1.0 200 OK");
        assert_eq!(
            asked("/healthz", &leaving).await,
            "HTTP/1.0 503 Service Unavailable"
        );
    }

    fn json(probe: Probe, state: &HealthState, now: i64) -> (bool, serde_json::Value) {
        let (fine, body) = evaluate(probe, state, at(now));
        (fine, serde_json::to_value(body).unwrap())
    }

    #[test]
    fn kp_hc_03_healthy_while_nothing_waits() {
        assert!(json(Probe::Livez, &state(None, Some(true)), 1_000_000).0);
        assert!(json(Probe::Healthz, &state(None, Some(true)), 1_000_000).0);
    }

    #[test]
    fn pain_16_before_the_first_pass_livez_is_ok_and_healthz_is_not() {
        assert!(json(Probe::Livez, &HealthState::default(), 1000).0);
        let (fine, body) = json(Probe::Healthz, &HealthState::default(), 1000);
        assert!(!fine);
        assert_eq!((&body["healthy"], body.get("status")), (&true.into(), None));
    }

    #[test]
    fn the_state_of_watches_is_shown_and_does_not_affect_health() {
        let mut away = state(None, Some(true));
        away.inputs.push(CollectionView {
            name: "services".to_owned(),
            state: "stale".to_owned(),
            objects: 3,
            synced_seconds: None,
            heard_seconds: Some(7200),
            error: Some("Unreachable".to_owned()),
            map_gap: None,
        });
        let (fine, body) = json(Probe::Healthz, &away, 300);
        let wanted = serde_json::json!([{
            "name": "services", "state": "stale", "objects": 3, "heardSeconds": 7200,
            "error": "Unreachable",
        }]);
        assert_eq!((fine, &body["inputs"]), (true, &wanted));
    }

    #[test]
    fn kp_hc_03_unhealthy_once_the_oldest_change_waited_sixty_seconds() {
        let waiting = state(Some(200), Some(true));
        assert!(json(Probe::Livez, &waiting, 259).0);
        assert!(!json(Probe::Livez, &waiting, 260).0);
        assert!(!json(Probe::Healthz, &waiting, 260).0);
    }

    #[test]
    fn kp_hc_01_an_ineligible_node_fails_healthz_and_not_livez() {
        let leaving = state(None, Some(false));
        let (fine, body) = json(Probe::Healthz, &leaving, 300);
        assert!(!fine);
        assert_eq!(
            (&body["nodeEligible"], &body["healthy"]),
            (&false.into(), &true.into())
        );
        assert!(json(Probe::Livez, &leaving, 300).0);
    }

    #[test]
    fn kp_hc_04_the_body_has_kube_proxys_fields() {
        let (_, healthz) = json(Probe::Healthz, &state(Some(200), Some(true)), 300);
        let expected = serde_json::json!({
            "lastUpdated": "1970-01-01T00:01:40Z", "currentTime": "1970-01-01T00:05:00Z",
            "nodeEligible": true, "healthy": false,
            "status": {"IPv4": {"lastUpdated": "1970-01-01T00:01:40Z", "healthy": false}},
        });
        assert_eq!(healthz, expected);
        let (_, livez) = json(Probe::Livez, &state(None, Some(true)), 300);
        assert_eq!(livez.get("nodeEligible"), None);
        assert_eq!(
            livez.pointer("/lastUpdated").unwrap(),
            "1970-01-01T00:05:00Z"
        );
    }
}
