//! The response on a health check port, with kube-proxy's body and headers (KP-HC-10).

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use topology_core::model::ObjectName;

use super::proxy_health::ProxyHealth;
use crate::health::HealthSource;
use crate::service_ports::{HealthPorts, Place};

/// Load balancers may give a node as many connections as it has endpoints.
const WEIGHT: &str = "x-load-balancing-endpoint-weight";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    service: Name<'a>,
    local_endpoints: usize,
    service_proxy_healthy: bool,
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    namespace: &'a str,
    name: &'a str,
}

/// Answers every path and method.
pub(super) fn router<S: HealthSource>(
    ports: HealthPorts,
    proxy: Arc<ProxyHealth<S>>,
    place: Place,
) -> Router {
    let place = Arc::new(place);
    Router::new().fallback(move || {
        let (ports, proxy) = (ports.clone(), Arc::clone(&proxy));
        let place = Arc::clone(&place);
        async move {
            let healthy = proxy.is_healthy().await;
            // A port that is about to close counts none.
            let endpoints = ports.get(&place).unwrap_or_default();
            let (service, _) = &*place;
            answer(service, endpoints, healthy)
        }
    })
}

fn answer(service: &ObjectName, endpoints: usize, healthy: bool) -> Response {
    let status = if endpoints > 0 && healthy {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = Body {
        service: Name {
            namespace: &service.namespace,
            name: &service.name,
        },
        local_endpoints: endpoints,
        service_proxy_healthy: healthy,
    };
    // `Json` sets the type of the content.
    let headers = [
        (
            header::X_CONTENT_TYPE_OPTIONS.as_str(),
            "nosniff".to_owned(),
        ),
        (WEIGHT, endpoints.to_string()),
    ];
    (status, headers, axum::Json(body)).into_response()
}
