//! Tests what a hostile process that may open the socket can do to other clients.

use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::*;

/// Longer than any limit.
const PATIENCE: Duration = Duration::from_secs(40);

/// The beginnings of requests.
async fn half_open(path: &Path, count: usize) -> Vec<UnixStream> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = UnixStream::connect(path).await.unwrap();
        // The server may have dropped the connection already.
        drop(client.write_all(b"GET /v1/status HTTP/1.1\r\n").await);
        clients.push(client);
    }
    clients
}

/// Whether the server holds the connection.
fn is_open(client: &UnixStream) -> bool {
    let read = client.try_read(&mut [0; 64]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn of_many_half_open_requests_few_stay_and_others_are_answered() {
    let (_folder, path, _server) = serve().await;
    let half = half_open(&path, 500).await;
    status(&path).await;
    let dropped = async {
        while half.iter().filter(|client| is_open(client)).count() > MAX_CONNECTIONS {
            yield_now().await;
        }
    };
    timeout(PATIENCE, dropped).await.unwrap();
}

#[tokio::test]
async fn half_a_request_is_dropped_soon() {
    let (_folder, path, _server) = serve().await;
    let mut half = half_open(&path, 1).await;
    // The server accepts the first connection before this one.
    status(&path).await;
    tokio::time::pause();
    let end = timeout(PATIENCE, half[0].read(&mut [0; 1])).await;
    assert_eq!(end.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_slow_answer_is_not_lost_to_half_open_requests() {
    let (handle, mut ends) = channel();
    let (_folder, path, _server) = serve_loop(handle).await;
    let socket = path.clone();
    let diff = tokio::spawn(async move { client::get::<DiffView>(&socket, "/v1/diff").await });
    let Some(Query::Plan(answer)) = ends.queries.recv().await else {
        panic!("the plan is asked for");
    };
    let mut half = half_open(&path, 500).await;
    let end = timeout(PATIENCE, half[0].read(&mut [0; 1])).await;
    assert_eq!(end.unwrap().unwrap_or(0), 0);
    answer.send(Ok(Vec::new())).unwrap();
    diff.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_explanation_waits_for_those_in_progress_and_other_requests_do_not() {
    let (_folder, path, _server) = serve().await;
    let explain =
        async || client::get::<Vec<ExplainView>>(&path, "/v1/explain?name=shop/cart").await;
    let all = u32::try_from(MAX_EXPLANATIONS).unwrap();
    let in_progress = EXPLANATIONS.acquire_many(all).await.unwrap();
    let waits = timeout(Duration::from_millis(200), explain()).await;
    assert!(waits.is_err());
    status(&path).await;
    drop(in_progress);
    explain().await.unwrap();
}
