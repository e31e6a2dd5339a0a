//! Connections of servers on this node: `POST /v1/endpoint-connection?endpoints=10.244.1.10:53,[fd00::10]:53`.
//!
//! The response has the code 200, and its body never ends. The kernel closes the connection of a server that ends; hyper
//! then drops the body, and with it the [`AdmittedConnection`].

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use futures_util::stream;
use serde::Deserialize;
use telemetry::LongLived;
use tokio::time::sleep;

use super::admission::{AdmittedConnection, MAX_CONNECTIONS};
use super::context::Api;
use super::refusal::Refusal;

/// More endpoints than a server has, whose pod has at most two addresses.
const MOST_ENDPOINTS: usize = 16;

/// Interval of the bytes in a response.
const HEARTBEAT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
pub(super) struct ConnectQuery {
    endpoints: String,
}

pub(super) async fn open(
    State(api): State<Arc<Api>>,
    Query(query): Query<ConnectQuery>,
) -> Result<(Extension<LongLived>, Body), Refusal> {
    let endpoints = parse(&query.endpoints).ok_or_else(|| {
        let words = format!(
            "{:?} is not a list of at most {MOST_ENDPOINTS} endpoints such as 10.244.1.10:53,[fd00::10]:53",
            query.endpoints
        );
        Refusal::new(StatusCode::BAD_REQUEST, words)
    })?;
    let admitted = api.admission.admit(endpoints).await.ok_or_else(|| {
        let words = format!(
            "{MAX_CONNECTIONS} servers are connected or wait for it, and no more are admitted"
        );
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, words)
    })?;
    Ok((Extension(LongLived), held(admitted)))
}

fn parse(endpoints: &str) -> Option<BTreeSet<SocketAddr>> {
    let endpoint = |text: &str| {
        let endpoint: SocketAddr = text.parse().ok()?;
        Some(SocketAddr::new(
            endpoint.ip().to_canonical(),
            endpoint.port(),
        ))
    };
    let endpoints: BTreeSet<_> = endpoints.split(',').map(endpoint).collect::<Option<_>>()?;
    (endpoints.len() <= MOST_ENDPOINTS).then_some(endpoints)
}

/// A body without end, which holds the connection until it is dropped.
///
/// hyper does not notice the end of a client that has sent more than a request without a body. Writing to it fails.
fn held(connection: AdmittedConnection) -> Body {
    Body::from_stream(stream::unfold(connection, |connection| async {
        sleep(HEARTBEAT).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b"\n")), connection))
    }))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use agent_api::client;
    use axum::response::IntoResponse as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;
    use crate::api::admission::Admission;
    use crate::api::socket::{Socket, listen};
    use crate::endpoint_connections::EndpointConnections;
    use crate::state::{AgentHandle, channel};

    const ENDPOINT: &str = "10.244.1.10:53";

    fn api(handle: AgentHandle, connections: EndpointConnections) -> Api {
        Api {
            handle,
            node: "n1".into(),
            source: String::new(),
            sync_status: None,
            started: Instant::now(),
            admission: Admission::new(connections),
        }
    }

    /// The API on a socket, which ends with the test.
    async fn serve(folder: &Path) -> (PathBuf, EndpointConnections) {
        let path = folder.join("agent.sock");
        let Socket { listener, file } = listen(&path).await.unwrap();
        let (handle, ends) = channel();
        let connections = ends.endpoint_connections.clone();
        let api = api(handle, connections.clone());
        tokio::spawn(async move {
            let _held = (file, ends);
            match crate::api::serve(listener, api).await {}
        });
        (path, connections)
    }

    /// A server that holds a connection, after the agent knows it.
    async fn connect(path: &Path, endpoints: &[&str]) -> JoinHandle<()> {
        let (sender, opened) = oneshot::channel();
        let path = path.to_owned();
        let endpoints: Vec<SocketAddr> = endpoints.iter().map(|one| one.parse().unwrap()).collect();
        let server = tokio::spawn(async move {
            let opened = || sender.send(()).unwrap();
            client::hold_endpoints(&path, &endpoints, opened)
                .await
                .unwrap();
        });
        opened.await.unwrap();
        server
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_noticed_within_milliseconds() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connections) = serve(folder.path()).await;
        let mut changes = connections.changes();
        let server = connect(&path, &[ENDPOINT, "[fd00::10]:53"]).await;
        changes.next().await;
        assert!(connections.ended().is_empty());
        // The response does not end.
        assert!(
            timeout(Duration::from_millis(300), changes.next())
                .await
                .is_err()
        );

        // As when the kernel closes the sockets of a process.
        server.abort();
        let ended = timeout(Duration::from_secs(10), changes.next());
        ended.await.unwrap();
        let both = [ENDPOINT, "[fd00::10]:53"].map(|one| one.parse().unwrap());
        assert_eq!(connections.ended(), both.into());

        let _server = connect(&path, &[ENDPOINT]).await;
        assert_eq!(connections.ended(), both[1..].iter().copied().collect());
    }

    #[tokio::test]
    async fn a_server_learns_why_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connections) = serve(folder.path()).await;
        let many: Vec<_> = (0..17).map(|port| ([10, 244, 1, 1], port).into()).collect();
        for endpoints in [vec![], many] {
            let refused = client::hold_endpoints(&path, &endpoints, || panic!("it is refused"));
            let error = refused.await.unwrap_err().to_string();
            assert!(error.contains("is not a list of at most 16"), "{error}");
        }
        assert_eq!(connections.ended(), BTreeSet::new());
    }

    #[tokio::test]
    async fn a_connection_outlasts_the_limits_of_requests_and_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connections) = serve(folder.path()).await;
        let server = connect(&path, &[ENDPOINT]).await;
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(UnixStream::connect(&path).await.unwrap());
        }
        let end = timeout(HEARTBEAT, silent[0].read(&mut [0; 1])).await;
        assert_eq!(end.unwrap().unwrap(), 0);
        tokio::time::pause();
        sleep(Duration::from_secs(3_600)).await;
        assert!(!server.is_finished());
        assert_eq!(connections.ended(), BTreeSet::new());
    }

    #[tokio::test]
    async fn the_end_of_a_client_is_noticed_whatever_it_has_sent() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connections) = serve(folder.path()).await;
        let head =
            format!("POST /v1/endpoint-connection?endpoints={ENDPOINT} HTTP/1.1\r\nHost: a\r\n");
        for more in ["\r\nGET / HTTP/1.1", "Content-Length: 1\r\n\r\n"] {
            let mut client = UnixStream::connect(&path).await.unwrap();
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(more.as_bytes()).await.unwrap();
            client.read_exact(&mut [0; 15]).await.unwrap();
            assert_eq!(connections.ended(), BTreeSet::new());
            drop(client);
            tokio::time::pause();
            sleep(HEARTBEAT * 2).await;
            assert_eq!(connections.ended().len(), 1, "{more:?}");
            tokio::time::resume();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn servers_beyond_the_limit_are_refused_until_one_ends() {
        let (handle, _ends) = channel();
        let api = Arc::new(api(handle, EndpointConnections::default()));
        let connect = async || {
            let query = ConnectQuery {
                endpoints: ENDPOINT.to_owned(),
            };
            let opened = open(State(Arc::clone(&api)), Query(query)).await;
            opened.map_err(|refusal| refusal.into_response().status())
        };
        let mut servers = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            servers.push(connect().await.unwrap());
        }
        let refused = connect().await.unwrap_err();
        assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
        servers.pop();
        assert!(connect().await.is_ok());
    }

    #[test]
    fn endpoints_are_addresses_with_ports() {
        assert_eq!(parse(ENDPOINT).unwrap().len(), 1);
        assert_eq!(parse("[::ffff:10.244.1.10]:53"), parse(ENDPOINT));
        for text in ["", "10.244.1.10", "10.244.1.10:53,", "dns:53"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
