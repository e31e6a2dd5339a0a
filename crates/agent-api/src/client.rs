//! Queries the running agent over its unix socket.

use std::io;
use std::path::Path;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The query names an object that the agent does not have.
    #[error("{0}")]
    NotFound(String),
    /// No agent answers, or the answer is an error.
    #[error("{0}")]
    Failed(String),
}

/// Time limit for a response.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Requests `path` (with its query string) and decodes the JSON response.
///
/// # Errors
/// No agent listens, the socket is not accessible, the agent does not respond in time, or it responds with an error.
pub async fn get<T: DeserializeOwned>(socket: &Path, path: &str) -> Result<T, QueryError> {
    let answer = tokio::time::timeout(TIMEOUT, fetch(socket, path));
    let (status, body) = answer.await.map_err(|_elapsed| {
        QueryError::Failed(format!(
            "the agent at {} gave no answer in {} s; its log says what keeps it",
            socket.display(),
            TIMEOUT.as_secs()
        ))
    })??;
    match status {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| {
            QueryError::Failed(format!(
                "the answer of the agent at {} is not understood ({error}); use the ipvs-topo of the same version",
                socket.display()
            ))
        }),
        StatusCode::NOT_FOUND => Err(QueryError::NotFound(reason(&body))),
        status => Err(QueryError::Failed(format!(
            "the agent at {} answers {status}: {}",
            socket.display(),
            reason(&body)
        ))),
    }
}

/// Extracts the message of an error response.
fn reason(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: String,
    }
    serde_json::from_slice::<Answer>(body).map_or_else(
        |_| String::from_utf8_lossy(body).trim().to_owned(),
        |answer| answer.error,
    )
}

async fn fetch(socket: &Path, path: &str) -> Result<(StatusCode, Bytes), QueryError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| no_agent(socket, &error))?;
    let broken = |error: hyper::Error| {
        QueryError::Failed(format!(
            "the agent at {} broke off: {error}",
            socket.display()
        ))
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let request = Request::get(path)
        .header(hyper::header::HOST, "agent")
        .body(Empty::<Bytes>::new())
        .map_err(|error| QueryError::NotFound(format!("{path:?} cannot be asked: {error}")))?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    };
    // Drives the connection while the request runs.
    tokio::select! {
        answer = exchange => answer.map_err(broken),
        Err(error) = connection => Err(broken(error)),
    }
}

fn no_agent(socket: &Path, error: &io::Error) -> QueryError {
    let place = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => QueryError::Failed(format!(
            "no agent is running: nothing answers at {place}; start one with \
             `ipvs-topo agent --cluster PATH --node NAME`, or name its socket with --socket"
        )),
        io::ErrorKind::PermissionDenied => QueryError::Failed(format!(
            "the agent's socket {place} is for root: run this as root"
        )),
        _ => QueryError::Failed(format!(
            "the agent's socket {place} cannot be used: {error}"
        )),
    }
}
