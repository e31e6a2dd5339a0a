//! The metrics server: `/metrics`, `/metrics/slis`, `/healthz`, `/proxyMode` and `/configz`, as kube-proxy has them
//! (KP-HC-20).

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use telemetry::Format;

use super::Metrics;
use super::figures::Figures;
use super::health_checks::HealthCheckMetrics;
use crate::server_header::mark;

/// The routes; `figures` is called at each scrape, `config` is the body of `/configz`.
pub fn router<F>(metrics: Metrics, config: serde_json::Value, figures: F) -> Router
where
    F: AsyncFigures,
{
    let figures = Arc::new(figures);
    let scrape = move |headers: HeaderMap| {
        let (metrics, figures) = (metrics.clone(), Arc::clone(&figures));
        async move { exposition(metrics.expose(&figures.figures().await), &headers) }
    };
    health_checks()
        .route("/metrics", get(scrape))
        .route("/proxyMode", get(|| async { text("ipvs") }))
        .route("/configz", get(move || async move { axum::Json(config) }))
        .layer(map_response(mark))
}

/// `/healthz`, and the metrics about it, which DELETE resets.
fn health_checks() -> Router {
    let metrics = HealthCheckMetrics::new();
    let (scraped, cleared) = (metrics.clone(), metrics.clone());
    let check = move || {
        metrics.succeeded();
        async { text("ok") }
    };
    let scrape = move |headers: HeaderMap| async move { exposition(scraped.expose(), &headers) };
    let reset = move || {
        cleared.reset();
        async { text("metrics reset\n") }
    };
    Router::new()
        .route("/healthz", get(check))
        .route("/metrics/slis", get(scrape).delete(reset))
}

/// Collects the current values.
pub trait AsyncFigures: Send + Sync + 'static {
    /// The figures of now.
    fn figures(&self) -> impl Future<Output = Figures> + Send;
}

/// The response to a scrape, in the format that the scraper accepts.
fn exposition(text: Result<String, fmt::Error>, headers: &HeaderMap) -> Response {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept);
    match text {
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    struct NoFigures;

    impl AsyncFigures for NoFigures {
        async fn figures(&self) -> Figures {
            Figures::default()
        }
    }

    /// The body of the response to `METHOD PATH`.
    async fn body(server: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(server).await.unwrap();
        let request = format!("{request} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK"), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    #[tokio::test]
    async fn kp_hc_20_the_results_of_health_checks_are_metrics_of_their_own() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(Metrics::new(), json!({}), NoFigures);
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let results = async || {
            let text = body(address, "GET /metrics/slis").await;
            assert!(text.contains("\nprocess_start_time_seconds "), "{text}");
            let is_result = |line: &&str| line.starts_with("kubernetes_");
            let lines = text.lines().filter(is_result).map(str::to_owned);
            lines.collect::<Vec<_>>()
        };
        assert_eq!(results().await, Vec::<String>::new());
        for _ in 0..2 {
            assert_eq!(body(address, "GET /healthz").await, "ok");
        }
        let expected = [
            "kubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1",
            "kubernetes_healthchecks_total{name=\"ping\",type=\"healthz\",status=\"success\"} 2",
        ];
        assert_eq!(results().await, expected);
        let all = body(address, "GET /metrics").await;
        assert!(!all.contains("kubernetes_healthcheck"), "{all}");
        let reset = body(address, "DELETE /metrics/slis").await;
        assert_eq!(reset, "metrics reset\n");
        assert_eq!(results().await, Vec::<String>::new());
        server.abort();
    }
}
