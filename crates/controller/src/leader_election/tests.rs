//! An election against a fake API server with one Lease.

mod slow_server;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;

/// The Lease and its version; `written` receives the holder of each write.
struct Server {
    lease: Mutex<(Value, u64)>,
    written: mpsc::Sender<String>,
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> (StatusCode, Json<Value>) {
    let is_read = request.method() == Method::GET;
    let body = axum::body::to_bytes(request.into_body(), 65_536).await;
    let mut lease = server.lease.lock().unwrap();
    if is_read && lease.0.is_null() {
        let body = json!({ "kind": "Status", "code": 404, "reason": "NotFound", "message": "no" });
        return (StatusCode::NOT_FOUND, Json(body));
    }
    if !is_read {
        lease.1 += 1;
        lease.0 = serde_json::from_slice(&body.unwrap()).unwrap();
        let version = lease.1.to_string();
        lease.0["metadata"]["resourceVersion"] = json!(version);
        let holder = lease.0["spec"]["holderIdentity"].as_str().unwrap();
        server.written.send(holder.to_owned()).unwrap();
    }
    (StatusCode::OK, Json(lease.0.clone()))
}

/// Starts the server in its own thread. Returns its address, and a channel with the holder of each
/// write.
fn server() -> (String, mpsc::Receiver<String>) {
    let (written, holders) = mpsc::channel();
    let (sender, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender
                .send(listener.local_addr().unwrap().to_string())
                .unwrap();
            let server = Server {
                lease: Mutex::default(),
                written,
            };
            let router = Router::new().fallback(answer).with_state(Arc::new(server));
            axum::serve(listener, router).await.unwrap();
        });
    });
    (address.recv().unwrap(), holders)
}

/// Review M6: reading ten thousand policies blocked the renewal for longer than the Lease lasts.
#[test]
fn the_lease_is_renewed_while_the_process_computes() {
    let (address, holders) = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: it, contexts: [{{name: it, context: {{cluster: it, user: it}}}}], clusters: [{{name: it, cluster: {{server: 'http://{address}'}}}}], users: [{{name: it, user: {{}}}}]}}"
    );
    std::fs::write(&path, text).unwrap();
    let access = Access::kubeconfig(&path, "tests");
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let connection = Connection::open(&access).await.unwrap();
        let identity = LeaseIdentity {
            namespace: "test".to_owned(),
            name: "it".to_owned(),
            me: "me".to_owned(),
        };
        let (lead, leads) = watch::channel(None);
        let election = ElectionThread::start(access, connection, identity, lead).unwrap();
        // Blocks the only thread of this runtime: the Lease is created and renewed twice anyway.
        for _ in 0..3 {
            assert_eq!(holders.recv().unwrap(), "me");
        }
        assert!(leads.borrow().is_some_and(|until| Instant::now() < until));
        election.stop().await.unwrap();
        assert_eq!(holders.iter().find(String::is_empty), Some(String::new()));
    });
}

/// It is no sign of another replica that was faster, and an operator has to know it.
#[tokio::test]
async fn a_namespace_that_does_not_exist_is_a_failure_with_a_remedy() {
    let status = json!({
        "kind": "Status", "code": 404, "reason": "NotFound", "message": "namespaces \"typo\" not found",
    });
    let answer = move || std::future::ready((StatusCode::NOT_FOUND, Json(status.clone())));
    let client = kube::Client::new(Router::new().fallback(answer), "default");
    let connection = Connection::of_client(client);
    let identity = LeaseIdentity {
        namespace: "typo".to_owned(),
        name: "it".to_owned(),
        me: "me".to_owned(),
    };
    let record = Record::default();
    for (request, response) in [
        (LeaseRequest::Get, Response::Missing),
        (LeaseRequest::Create(record.clone()), Response::Failed),
        (LeaseRequest::Replace(record), Response::Lost),
    ] {
        let log = &mut LogOnce::default();
        assert_eq!(send(&connection, &identity, &request, log).await, response);
        let logged = (response == Response::Failed).then_some(
            "cannot create the lease in the namespace typo, so no replica leads: namespaces \"typo\" not found; create the namespace, or correct --namespace",
        );
        assert_eq!(log.lasting(), logged);
    }
}

/// The types of `k8s-openapi` must not change these fields.
#[test]
fn a_lease_is_written_with_these_fields_and_read_back() {
    let identity = LeaseIdentity {
        namespace: "kube-system".to_owned(),
        name: "it".to_owned(),
        me: "me".to_owned(),
    };
    let written = Record {
        holder: "me".to_owned(),
        duration: Duration::from_secs(15),
        transitions: 3,
        version: "7".to_owned(),
    };
    let mut object = serde_json::to_value(lease(&identity, &written)).unwrap();
    let time = object["spec"]["renewTime"].take();
    let time = time.as_str().unwrap();
    assert!(time.len() == 27 && time.ends_with('Z'), "{time}");
    assert_eq!(
        object,
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": "it", "namespace": "kube-system", "resourceVersion": "7" },
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 3,
                "renewTime": null,
            },
        })
    );
    assert_eq!(record(lease(&identity, &written)), written);
    let empty = serde_json::from_value(json!({"metadata": {"name": "it"}})).unwrap();
    assert_eq!(record(empty), Record::default());
}
