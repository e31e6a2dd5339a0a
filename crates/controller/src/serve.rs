//! `/healthz`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the process has seen everything that it follows.
#[derive(Debug, Clone, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    /// From now on.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Answers on `address` until the task is dropped.
pub async fn serve(address: SocketAddr, ready: Ready, metrics: Metrics) -> anyhow::Result<()> {
    let readiness = move || async move {
        if ready.is() {
            (StatusCode::OK, "ok\n")
        } else {
            let text = "some collection was not read yet\n";
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    };
    let figures = move || async move { ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text()) };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(figures));
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; choose another with --bind-address")
    })?;
    tracing::info!(address = %listener.local_addr()?, "health and metrics server listens");
    axum::serve(listener, router).await?;
    Ok(())
}
