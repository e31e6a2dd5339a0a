//! Talks to the running agent over its unix socket.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Request, Response, StatusCode};
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
    let (status, body) = answer.await.map_err(|_elapsed| no_answer(socket))??;
    match status {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| {
            QueryError::Failed(format!(
                "the answer of the agent at {} is not understood ({error}); use the ipvs-topo of the same version",
                socket.display()
            ))
        }),
        status => Err(refused(socket, status, &body)),
    }
}

/// Holds a connection to the agent for a server at `endpoints`, until the returned future is dropped or the process ends.
/// Calls `opened` when the agent has accepted it. Completes when the agent ends the connection.
///
/// # Errors
/// The agent does not know it: none listens, the socket is not accessible, or the agent refuses.
pub async fn hold_endpoints(
    socket: &Path,
    endpoints: &[SocketAddr],
    opened: impl FnOnce(),
) -> Result<(), QueryError> {
    let endpoints: Vec<String> = endpoints.iter().map(SocketAddr::to_string).collect();
    let path = format!("/v1/endpoint-connection?endpoints={}", endpoints.join(","));
    let (mut sender, connection) = connect(socket).await?;
    let request = request(Request::post(&*path), &path)?;
    let hold = async {
        let answer = tokio::time::timeout(TIMEOUT, sender.send_request(request));
        let response = answer.await.map_err(|_elapsed| no_answer(socket))?;
        let response = response.map_err(|error| broken(socket, &error))?;
        if response.status() != StatusCode::OK {
            let (status, body) = whole(response)
                .await
                .map_err(|error| broken(socket, &error))?;
            return Err(refused(socket, status, &body));
        }
        opened();
        let mut body = response.into_body();
        // What the body contains does not matter, and an error is its end, too.
        while let Some(Ok(_)) = body.frame().await {}
        Ok(())
    };
    drive(connection, hold).await
}

/// Drives the connection while `exchange` uses it. The exchange has the errors of the connection, too.
async fn drive<T>(connection: ApiConnection, exchange: impl Future<Output = T>) -> T {
    let connection = async {
        let _ended = connection.await;
        std::future::pending().await
    };
    tokio::select! {
        done = exchange => done,
        never = connection => never,
    }
}

fn no_answer(socket: &Path) -> QueryError {
    QueryError::Failed(format!(
        "the agent at {} gave no answer in {} s; its log says what keeps it",
        socket.display(),
        TIMEOUT.as_secs()
    ))
}

fn broken(socket: &Path, error: &hyper::Error) -> QueryError {
    QueryError::Failed(format!(
        "the agent at {} broke off: {error}",
        socket.display()
    ))
}

fn refused(socket: &Path, status: StatusCode, body: &[u8]) -> QueryError {
    let place = socket.display();
    match (status, reason(body)) {
        (StatusCode::NOT_FOUND, Some(reason)) => QueryError::NotFound(reason),
        (status, Some(reason)) => {
            QueryError::Failed(format!("the agent at {place} answers {status}: {reason}"))
        }
        (status, None) => QueryError::Failed(format!(
            "the agent at {place} answers {status} with {:?} and no reason; check that an agent of this version has \
             the socket",
            String::from_utf8_lossy(body).trim()
        )),
    }
}

/// Extracts the message of an error response of an agent.
fn reason(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: String,
    }
    let answer = serde_json::from_slice::<Answer>(body).ok()?;
    Some(answer.error)
}

async fn fetch(socket: &Path, path: &str) -> Result<(StatusCode, Bytes), QueryError> {
    let (mut sender, connection) = connect(socket).await?;
    let request = request(Request::get(path), path)?;
    let exchange = async { whole(sender.send_request(request).await?).await };
    let answer = drive(connection, exchange).await;
    answer.map_err(|error| broken(socket, &error))
}

/// A connection that is to be driven while requests are sent.
type ApiConnection = Connection<TokioIo<UnixStream>, Empty<Bytes>>;

async fn connect(socket: &Path) -> Result<(SendRequest<Empty<Bytes>>, ApiConnection), QueryError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| no_agent(socket, &error))?;
    let connected = handshake(TokioIo::new(stream)).await;
    connected.map_err(|error| broken(socket, &error))
}

fn request(
    request: hyper::http::request::Builder,
    path: &str,
) -> Result<Request<Empty<Bytes>>, QueryError> {
    request
        .header(hyper::header::HOST, "agent")
        .body(Empty::new())
        .map_err(|error| QueryError::NotFound(format!("{path:?} cannot be asked: {error}")))
}

async fn whole(response: Response<Incoming>) -> Result<(StatusCode, Bytes), hyper::Error> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, body))
}

fn no_agent(socket: &Path, error: &io::Error) -> QueryError {
    let place = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => QueryError::Failed(format!(
            "no agent is running: nothing answers at {place}; start one with \
             `ipvs-topo agent --cluster PATH --node NAME`, name its socket (--socket; --agent-socket for `ipvs-topo dns`), \
             or read the cluster without an agent (`explain` and `diff` with --node NAME)"
        )),
        io::ErrorKind::PermissionDenied => QueryError::Failed(format!(
            "the agent's socket {place} is for root: run this as root"
        )),
        _ => QueryError::Failed(format!(
            "the agent's socket {place} cannot be used: {error}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_reason_of_the_agent_and_is_not_found_only_if_an_agent_says_so() {
        let socket = Path::new("/run/agent.sock");
        let refused = |status, body: &str| refused(socket, status, body.as_bytes());
        let unknown = refused(StatusCode::NOT_FOUND, r#"{"error": "no Service a/b"}"#);
        assert!(matches!(&unknown, QueryError::NotFound(words) if words == "no Service a/b"));
        for (status, body, expected) in [
            (
                StatusCode::NOT_FOUND,
                "",
                "404 Not Found with \"\" and no reason",
            ),
            (
                StatusCode::NOT_FOUND,
                "gone\n",
                "404 Not Found with \"gone\" and no reason",
            ),
            (
                StatusCode::BAD_GATEWAY,
                r#"{"error": "no kernel"}"#,
                "502 Bad Gateway: no kernel",
            ),
        ] {
            let error = refused(status, body);
            assert!(matches!(error, QueryError::Failed(_)), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
