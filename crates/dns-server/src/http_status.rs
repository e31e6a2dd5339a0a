//! Serves metrics and health over HTTP.
//!
//! The thread that answers DNS queries also answers these requests. So a server that hangs answers none of them, and the
//! kubelet's probe of `/livez` fails.

use std::convert::Infallible;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use cluster::api::SyncStatus;
use telemetry::Format;
use tokio::net::TcpListener;

use crate::client_limit::ClientLimit;
use crate::handler::Handler;
use crate::metrics::DnsFigures;

/// Serves until the future is dropped; without a listener nothing.
pub(crate) async fn serve(listener: Option<TcpListener>, router: Router) -> Infallible {
    match listener {
        Some(listener) => telemetry::serve(listener, router).await,
        None => std::future::pending().await,
    }
}

/// What the responses say.
#[derive(Debug, Clone)]
pub(crate) struct HttpStatus {
    pub(crate) handler: Handler,
    pub(crate) connections: ClientLimit,
    /// `None` for files.
    pub(crate) sync_status: Option<SyncStatus>,
}

impl HttpStatus {
    /// `/metrics`.
    pub(crate) fn metrics(self) -> Router {
        let scrape = move |headers: HeaderMap| async move { self.exposition(&headers) };
        Router::new().route("/metrics", get(scrape))
    }

    /// `/livez` is fine from the start, `/readyz` and `/healthz` when the cluster is read.
    pub(crate) fn health(self) -> Router {
        let readiness = move || async move { self.readiness() };
        Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readiness.clone()))
            .route("/healthz", get(readiness))
    }

    fn readiness(&self) -> (StatusCode, &'static str) {
        if self.handler.state.is_read() {
            (StatusCode::OK, "ok\n")
        } else {
            let text = "the first list of the cluster is not complete\n";
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }

    fn exposition(&self, headers: &HeaderMap) -> Response {
        let accept = headers.get(header::ACCEPT);
        let format = Format::accepted(accept.and_then(|value| value.to_str().ok()));
        let exposed = self.handler.metrics.expose(&DnsFigures {
            connections: self.connections.in_use(),
            waiting_questions: self.handler.forwarder.waiting(),
            is_cluster_read: self.handler.state.is_read(),
            sync_status: self.sync_status.as_ref(),
        });
        match exposed {
            Ok(text) => {
                let headers = [(header::CONTENT_TYPE, format.content_type())];
                (headers, format.convert(text)).into_response()
            }
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}
