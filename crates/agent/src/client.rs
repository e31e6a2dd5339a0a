//! Asks the running agent over its unix socket.

use std::io;
use std::path::Path;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::cli::exit::Failure;

/// Longest wait for an answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Gets `path` (with its query) and reads the JSON answer.
///
/// # Errors
/// No agent listens, we may not ask it, it does not answer in time, or it answers with an error.
pub async fn get<T: DeserializeOwned>(socket: &Path, path: &str) -> Result<T, Failure> {
    let answer = tokio::time::timeout(PATIENCE, fetch(socket, path));
    let (status, body) = answer.await.map_err(|_elapsed| {
        Failure::trouble(format_args!(
            "the agent at {} gave no answer in {} s; its log says what keeps it",
            socket.display(),
            PATIENCE.as_secs()
        ))
    })??;
    match status {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| {
            Failure::trouble(format_args!(
                "the answer of the agent at {} is not understood ({error}); use the ipvs-topo of the same version",
                socket.display()
            ))
        }),
        StatusCode::NOT_FOUND => Err(Failure::input(reason(&body))),
        status => Err(Failure::trouble(format_args!(
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

async fn fetch(socket: &Path, path: &str) -> Result<(StatusCode, Bytes), Failure> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|error| no_agent(socket, &error))?;
    let broken = |error: hyper::Error| {
        Failure::trouble(format_args!(
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
        .map_err(|error| Failure::input(format_args!("{path:?} cannot be asked: {error}")))?;
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

fn no_agent(socket: &Path, error: &io::Error) -> Failure {
    let place = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::trouble(format_args!(
                "no agent is running: nothing answers at {place}; start one with \
             `ipvs-topo agent --cluster PATH --node NAME`, or name its socket with --socket"
            ))
        }
        io::ErrorKind::PermissionDenied => Failure::trouble(format_args!(
            "the agent's socket {place} is for root: run this as root"
        )),
        _ => Failure::trouble(format_args!(
            "the agent's socket {place} cannot be used: {error}"
        )),
    }
}

/// Runs one command's conversation with the agent to its end, on this thread.
///
/// # Errors
/// The runtime cannot be built, or what `work` returns.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Failure::trouble(format_args!("no async runtime: {error}")))?;
    runtime.block_on(work)
}
