//! Connections of servers on this node: `POST /v1/endpoint-connection?endpoints=10.244.1.10:53,[fd00::10]:53`.
//!
//! The response has the code 200 at once, and its body never ends. The kernel closes the connection of a server that ends;
//! hyper then drops the body, and with it the [`EndpointConnection`].

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use futures_util::stream;
use serde::Deserialize;

use super::context::Api;
use super::refusal::Refusal;
use crate::endpoint_connections::EndpointConnection;

/// More endpoints than a server has, whose pod has at most two addresses.
const MOST_ENDPOINTS: usize = 16;

#[derive(Debug, Deserialize)]
pub(super) struct ConnectQuery {
    endpoints: String,
}

pub(super) async fn open(
    State(api): State<Arc<Api>>,
    Query(query): Query<ConnectQuery>,
) -> Result<Body, Refusal> {
    let endpoints = parse(&query.endpoints).ok_or_else(|| {
        let words = format!(
            "{:?} is not a list of at most {MOST_ENDPOINTS} endpoints such as 10.244.1.10:53,[fd00::10]:53",
            query.endpoints
        );
        Refusal::new(StatusCode::BAD_REQUEST, words)
    })?;
    for endpoint in &endpoints {
        tracing::info!("the server at {endpoint} is connected to this agent");
    }
    Ok(held(api.endpoint_connections.connect(endpoints)))
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
fn held(connection: EndpointConnection) -> Body {
    Body::from_stream(stream::once(async move {
        let _connection = connection;
        std::future::pending::<Result<Bytes, Infallible>>().await
    }))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use agent_api::client;
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::api::router;
    use crate::api::socket::{Socket, listen};
    use crate::endpoint_connections::EndpointConnections;
    use crate::state::channel;

    const ENDPOINT: &str = "10.244.1.10:53";

    /// The API on a socket, which ends with the test.
    async fn serve(folder: &Path) -> (PathBuf, EndpointConnections) {
        let path = folder.join("agent.sock");
        let Socket { listener, file } = listen(&path).await.unwrap();
        let (handle, ends) = channel();
        let connections = ends.endpoint_connections.clone();
        let api = Api {
            handle,
            node: "n1".into(),
            source: String::new(),
            sync_status: None,
            started: Instant::now(),
            endpoint_connections: connections.clone(),
        };
        tokio::spawn(async move {
            let _held = (file, ends);
            axum::serve(listener, router(Arc::new(api))).await.unwrap();
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
            tokio::time::timeout(Duration::from_millis(300), changes.next())
                .await
                .is_err()
        );

        // As when the kernel closes the sockets of a process.
        server.abort();
        let ended = tokio::time::timeout(Duration::from_secs(10), changes.next());
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

    #[test]
    fn endpoints_are_addresses_with_ports() {
        assert_eq!(parse(ENDPOINT).unwrap().len(), 1);
        assert_eq!(parse("[::ffff:10.244.1.10]:53"), parse(ENDPOINT));
        for text in ["", "10.244.1.10", "10.244.1.10:53,", "dns:53"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
