//! Checks requests as a server sees them, and answers as callers see them. The server is
//! in-process.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use kube_io::{ApiError, Connection, Fault, Patch, Requests, Verb};
use serde_json::json;

/// What the server saw of each request: method, path with query, content type, body.
type Seen = Arc<Mutex<Vec<String>>>;

/// A server with the same answer to every request.
fn server(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> (Connection, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let router = Router::new().fallback(move |request: Request| {
        let (log, answer) = (Arc::clone(&log), answer.clone());
        async move {
            let (head, body) = request.into_parts();
            let body: Bytes = to_bytes(body, 1 << 20).await.unwrap();
            let content = head.headers["content-type"].to_str().unwrap();
            assert_eq!(head.headers["accept-encoding"], "gzip");
            let line = format!(
                "{} {} {content} {}",
                head.method,
                head.uri,
                String::from_utf8_lossy(&body)
            );
            log.lock().unwrap().push(line);
            answer()
        }
    });
    (
        Connection::of_client(kube::Client::new(router, "default")),
        seen,
    )
}

fn failing(code: u16, body: &'static str) -> Connection {
    server(move || (StatusCode::from_u16(code).unwrap(), body).into_response()).0
}

async fn error(code: u16, body: &'static str) -> ApiError {
    failing(code, body)
        .get("/api/v1/namespaces/shop/services/cart")
        .await
        .unwrap_err()
}

#[tokio::test]
async fn requests_have_the_form_that_the_api_server_requires() {
    let (api, seen) = server(|| r#"{"kind":"Service"}"#.into_response());
    let object = json!({"kind": "Service"});
    let path = "/api/v1/namespaces/shop/services";
    let one = "/api/v1/namespaces/shop/services/cart";
    assert_eq!(api.get(one).await.unwrap(), object);
    api.list(&format!("{path}?limit=5")).await.unwrap();
    api.create(path, &object).await.unwrap();
    api.replace(one, &object).await.unwrap();
    api.patch(one, Patch::Merge, &object).await.unwrap();
    let apply = Patch::Apply {
        manager: "tester",
        force: true,
    };
    api.patch(&format!("{one}/status"), apply, &object)
        .await
        .unwrap();
    api.delete(one).await.unwrap();
    let body = r#"{"kind":"Service"}"#;
    let expected = [
        format!("GET {one} application/json "),
        format!("GET {path}?limit=5 application/json "),
        format!("POST {path} application/json {body}"),
        format!("PUT {one} application/json {body}"),
        format!("PATCH {one} application/merge-patch+json {body}"),
        format!(
            "PATCH {one}/status?fieldManager=tester&force=true application/apply-patch+yaml {body}"
        ),
        format!("DELETE {one} application/json "),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn each_status_code_has_its_fault() {
    for (code, fault) in [
        (401, Fault::Unauthorized),
        (403, Fault::Forbidden),
        (404, Fault::NotFound),
        (409, Fault::Conflict),
        (410, Fault::Gone),
        (422, Fault::Invalid),
        (429, Fault::TooManyRequests),
        (500, Fault::Unavailable),
        (503, Fault::Unavailable),
        (504, Fault::Timeout),
    ] {
        let error = error(code, "trouble").await;
        assert_eq!(
            (error.fault, error.code, &*error.message),
            (fault, Some(code), "trouble")
        );
        assert!(
            error.to_string().starts_with("get services shop/cart: "),
            "{error}"
        );
    }
    assert_eq!(error(200, "<html>").await.fault, Fault::DecodeError);
}

#[tokio::test]
async fn retry_after_is_read_from_the_header() {
    let (api, _) =
        server(|| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3")], "").into_response());
    let error = api.list("/api/v1/nodes").await.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_times_out() {
    let router = Router::new().fallback(std::future::pending::<()>);
    let api = Connection::of_client(kube::Client::new(router, "default"));
    assert_eq!(api.get("/version").await.unwrap_err().fault, Fault::Timeout);
}

#[tokio::test]
async fn requests_and_bytes_are_counted() {
    let api = failing(404, "12345");
    let path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
    for _ in 0..2 {
        api.clone().list(path).await.unwrap_err();
    }
    let key = Requests {
        verb: Verb::List,
        resource: "endpointslices.discovery.k8s.io".to_owned(),
        code: Some(404),
    };
    let count = api.count();
    assert_eq!((count.requests[&key], count.total()), (2, 2));
    assert_eq!(count.bytes["endpointslices.discovery.k8s.io"], 10);
}

/// An answer in several gzip members, as a server flushes several times.
fn compressed(parts: &[&str]) -> Response {
    let mut body = Vec::new();
    for part in parts {
        let mut encoder = GzEncoder::new(&mut body, Compression::fast());
        encoder.write_all(part.as_bytes()).unwrap();
        encoder.finish().unwrap();
    }
    ([("content-encoding", "gzip")], body).into_response()
}

#[tokio::test]
async fn a_compressed_answer_is_read_whole_and_counted_compressed() {
    let long = format!(r#"{{"kind":"{}"#, "Service".repeat(1_000));
    let (api, _) = server(move || compressed(&[&long, r#""}"#]));
    let answer = api.get("/api/v1/services").await.unwrap();
    assert_eq!(answer["kind"].as_str().unwrap().len(), 7_000);
    let bytes = api.count().bytes["services"];
    assert!((1..1_000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn an_answer_with_a_wrong_content_encoding_cannot_be_decoded() {
    let plain = r#"{"kind":"ServiceList"}"#;
    let (api, _) = server(move || ([("content-encoding", "gzip")], plain).into_response());
    let error = api.get("/api/v1/services").await.unwrap_err();
    assert_eq!(error.fault, Fault::DecodeError);
    assert!(error.message.contains("gzip header"), "{error}");
}

#[tokio::test]
async fn the_address_that_a_request_was_sent_to_is_known() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(|| async { "{}" });
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let url = format!("http://localhost:{}", address.port());
    let mut config = kube::Config::new(url.parse().unwrap());
    // Without certificate authorities of the system.
    config.root_cert = Some(Vec::new());
    let api = Connection::of_client(kube::Client::try_from(config).unwrap());
    let mut peers = api.peers();
    assert_eq!(*peers.borrow_and_update(), []);
    for _ in 0..2 {
        api.get("/api").await.unwrap();
    }
    assert_eq!(*peers.borrow_and_update(), [address]);
    server.abort();
}
