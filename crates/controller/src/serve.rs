//! Serves `/healthz`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::get;
use kube_io::Connection;
use telemetry::Format;

use crate::metrics::Metrics;

/// Whether the first lists are complete.
#[derive(Debug, Clone, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub async fn serve(
    address: SocketAddr,
    ready: Ready,
    metrics: Metrics,
    api: Connection,
) -> anyhow::Result<()> {
    let readiness = move || async move {
        if ready.is() {
            (StatusCode::OK, "ok\n")
        } else {
            let text = "the initial lists are not complete\n";
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    };
    let exposition = move |headers: HeaderMap| async move {
        metrics.set_requests(&api);
        let accept = headers.get(header::ACCEPT);
        let format = Format::accepted(accept.and_then(|value| value.to_str().ok()));
        let text = format.convert(metrics.text());
        ([(header::CONTENT_TYPE, format.content_type())], text)
    };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(exposition));
    let listener = telemetry::listen(address).with_context(|| {
        format!("cannot listen on {address}; choose another with --bind-address")
    })?;
    tracing::info!(address = %listener.local_addr()?, "health and metrics server listens");
    match telemetry::serve(listener, router).await {}
}
