//! Identifies the program on a health or metrics port: this agent sends a header, kube-proxy a characteristic body.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The `Server` header of this agent's responses, which distinguishes them from those of a kube-proxy on the same port.
pub const SERVER: &str = concat!("ipvs-topo/", env!("CARGO_PKG_VERSION"));

/// Time limit for a response.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Longest response that is read, in bytes; those of kube-proxy have some hundred.
const MAX_ANSWER: u64 = 4096;

/// The modes that kube-proxy reports (`/proxyMode`).
const MODES: [&str; 3] = ["iptables", "ipvs", "nftables"];

/// The program that answers on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PortOwner {
    /// kube-proxy, with its mode if the port reports it.
    KubeProxy { mode: Option<String> },
    /// This agent, or a program that is not a proxy.
    Other,
}

/// Sends requests to 127.0.0.1:`port`; `None` if no response comes in time.
pub(super) async fn probe(port: u16) -> Option<PortOwner> {
    match get(port, "/proxyMode").await.map(|text| identify(&text))? {
        PortOwner::Other => get(port, "/healthz").await.map(|text| identify(&text)),
        kube_proxy @ PortOwner::KubeProxy { .. } => Some(kube_proxy),
    }
}

fn identify(answer: &str) -> PortOwner {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let of_this_agent = |line: &str| {
        let (name, value) = line.split_once(':').unwrap_or_default();
        name.eq_ignore_ascii_case("server") && value.trim().starts_with("ipvs-topo/")
    };
    if head.lines().any(of_this_agent) {
        return PortOwner::Other;
    }
    let mode = MODES.into_iter().find(|mode| body.trim() == *mode);
    // The body of kube-proxy's health server (KP-HC-04).
    let is_health = ["\"lastUpdated\"", "\"currentTime\""]
        .iter()
        .all(|field| body.contains(field));
    if mode.is_none() && !is_health {
        return PortOwner::Other;
    }
    PortOwner::KubeProxy {
        mode: mode.map(str::to_owned),
    }
}

async fn get(port: u16, path: &str) -> Option<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        // With HTTP/1.0 the body ends with the connection, and is never chunked.
        let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream
            .take(MAX_ANSWER)
            .read_to_end(&mut answer)
            .await
            .ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(TIMEOUT, exchange).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::{HeaderValue, header};
    use axum::middleware::map_response;
    use axum::response::Response;
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;

    async fn mark(mut response: Response) -> Response {
        let server = HeaderValue::from_static(SERVER);
        response.headers_mut().insert(header::SERVER, server);
        response
    }

    /// A server that answers `path` with `body`, with or without this agent's header.
    async fn serve(path: &str, body: &'static str, ours: bool) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut router = Router::new().route(path, get(move || async move { body }));
        if ours {
            router = router.layer(map_response(mark));
        }
        tokio::spawn(async move { axum::serve(listener, router).await });
        port
    }

    const HEALTH: &str = r#"{"lastUpdated":"2026-11-24T01:00:00Z","currentTime":"2026-11-24T01:00:01Z","nodeEligible":true}"#;

    #[tokio::test]
    async fn kp_hc_20_the_port_of_metrics_names_the_mode() {
        for mode in MODES {
            let port = serve("/proxyMode", mode, false).await;
            let mode = Some(mode.to_owned());
            assert_eq!(probe(port).await, Some(PortOwner::KubeProxy { mode }));
        }
    }

    #[tokio::test]
    async fn kp_hc_04_the_port_of_health_has_kube_proxys_body() {
        let port = serve("/healthz", HEALTH, false).await;
        assert_eq!(probe(port).await, Some(PortOwner::KubeProxy { mode: None }));
    }

    #[tokio::test]
    async fn this_agents_own_answers_are_no_other_proxy() {
        for (path, body) in [("/proxyMode", "ipvs"), ("/healthz", HEALTH)] {
            let port = serve(path, body, true).await;
            assert_eq!(probe(port).await, Some(PortOwner::Other));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_that_accepts_and_stays_silent_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(probe(port).await, None);
    }

    #[tokio::test]
    async fn a_closed_port_has_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert_eq!(probe(port).await, None);
    }
}
