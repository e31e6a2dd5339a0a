//! Asks the running agent over its unix socket.

use std::io;
use std::path::Path;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The question names something that the agent does not have.
    #[error("{0}")]
    NotFound(String),
    /// No agent answers, or it cannot.
    #[error("{0}")]
    Trouble(String),
}

/// Longest wait for an answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Gets `path` (with its query) and reads the JSON answer.
///
/// # Errors
/// No agent listens, we may not ask it, it does not answer in time, or it answers with an error.
pub async fn get<T: DeserializeOwned>(socket: &Path, path: &str) -> Result<T, AskError> {
    let answer = tokio::time::timeout(PATIENCE, fetch(socket, path));
    let (status, body) = answer.await.map_err(|_elapsed| {
        AskError::Trouble(format!(
            "the agent at {} gave no answer in {} s; its log says what keeps it",
            socket.display(),
            PATIENCE.as_secs()
        ))
    })??;
    match status {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| {
            AskError::Trouble(format!(
                "the answer of the agent at {} is not understood ({error}); use the ipvs-topo of the same version",
                socket.display()
            ))
        }),
        StatusCode::NOT_FOUND => Err(AskError::NotFound(reason(&body))),
        status => Err(AskError::Trouble(format!(
            "the agent at {} answers {status}: {}",
            socket.display(),
            reason(&body)
        ))),
    }
}

/// An error answer in words.
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

async fn fetch(socket: &Path, path: &str) -> Result<(StatusCode, Bytes), AskError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| no_agent(socket, &error))?;
    let broken = |error: hyper::Error| {
        AskError::Trouble(format!(
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
        .map_err(|error| AskError::NotFound(format!("{path:?} cannot be asked: {error}")))?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    };
    // The connection is driven beside the exchange and ends with it.
    tokio::select! {
        answer = exchange => answer.map_err(broken),
        Err(error) = connection => Err(broken(error)),
    }
}

fn no_agent(socket: &Path, error: &io::Error) -> AskError {
    let place = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::Trouble(format!(
            "no agent is running: nothing answers at {place}; start one with \
             `ipvs-topo agent --cluster PATH --node NAME`, or name its socket with --socket"
        )),
        io::ErrorKind::PermissionDenied => AskError::Trouble(format!(
            "the agent's socket {place} is for root: run this as root"
        )),
        _ => AskError::Trouble(format!(
            "the agent's socket {place} cannot be used: {error}"
        )),
    }
}
