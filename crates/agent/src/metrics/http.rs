//! The metrics server: `/metrics`, `/healthz`, `/proxyMode` and `/configz`, as kube-proxy has them (KP-HC-20).

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use telemetry::Format;

use super::Metrics;
use super::figures::Figures;
use crate::server_header::mark;

/// The routes; `figures` is called at each scrape, `config` is the body of `/configz`.
pub fn router<F>(metrics: Metrics, config: serde_json::Value, figures: F) -> Router
where
    F: AsyncFigures,
{
    let figures = Arc::new(figures);
    let scrape = move |headers: HeaderMap| {
        let (metrics, figures) = (metrics.clone(), Arc::clone(&figures));
        async move { scrape(&metrics, &figures.figures().await, &headers) }
    };
    Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(|| async { text("ok") }))
        .route("/proxyMode", get(|| async { text("ipvs") }))
        .route("/configz", get(move || async move { axum::Json(config) }))
        .layer(map_response(mark))
}

/// Collects the current values.
pub trait AsyncFigures: Send + Sync + 'static {
    /// The figures of now.
    fn figures(&self) -> impl Future<Output = Figures> + Send;
}

fn scrape(metrics: &Metrics, figures: &Figures, headers: &HeaderMap) -> Response {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept);
    match metrics.expose(figures) {
        Ok(text) => (
            [(header::CONTENT_TYPE, format.content_type())],
            format.convert(text),
        )
            .into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn text(words: &'static str) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, words)
}
