//! Marks the answers of this agent on the ports of health and metrics with its own `Server` header.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use dataplane::other_proxy::SERVER;

/// Sets the header, by which the search for other proxies tells this agent from a kube-proxy.
pub(crate) async fn mark(mut response: Response) -> Response {
    let server = HeaderValue::from_static(SERVER);
    response.headers_mut().insert(header::SERVER, server);
    response
}
