//! Adds the agent's `Server` header to responses on the health and metrics ports.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use dataplane::other_proxy::SERVER;

/// Sets the header by which the detection of other proxies distinguishes this agent from a kube-proxy.
pub(crate) async fn mark(mut response: Response) -> Response {
    let server = HeaderValue::from_static(SERVER);
    response.headers_mut().insert(header::SERVER, server);
    response
}
