//! Serves HTTP over TCP, and retries if the port cannot be bound.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::node_events::{NodeEvent, NodeEvents};
use crate::start_error::StartError;

/// Pause before the port is tried again (KP-HC-21).
const RETRY: Duration = Duration::from_secs(5);

/// One of the agent's servers, for messages.
#[derive(Debug)]
pub(crate) struct TcpServer {
    what: &'static str,
    flag: &'static str,
    /// kube-proxy's reason of the Event.
    reason: &'static str,
}

pub(crate) const HEALTH: TcpServer = TcpServer {
    what: "health",
    flag: "--healthz-bind-address",
    reason: "FailedToStartProxierHealthcheck",
};

pub(crate) const METRICS: TcpServer = TcpServer {
    what: "metrics",
    flag: "--metrics-bind-address",
    reason: "FailedToStartMetricServer",
};

/// The address of a server.
#[derive(Debug)]
pub(crate) struct Port {
    server: &'static TcpServer,
    address: SocketAddr,
    /// Bound before the start, if the agent may not run without it.
    bound: Option<TcpListener>,
}

impl Port {
    /// # Errors
    /// With `hard_fail`, if the address cannot be bound (KP-CF-18).
    pub(crate) fn new(
        server: &'static TcpServer,
        address: SocketAddr,
        hard_fail: bool,
    ) -> Result<Self, StartError> {
        let bound = hard_fail.then(|| telemetry::listen_in_both_families(address));
        let bound = bound.transpose().map_err(|source| StartError::Bind {
            what: server.what,
            flag: server.flag,
            address,
            source,
        })?;
        Ok(Self {
            server,
            address,
            bound,
        })
    }

    /// Serves `router` until the task is dropped. A port that cannot be bound is reported once and retried every 5 s;
    /// nothing else waits for it.
    pub(crate) async fn serve(self, router: Router, events: NodeEvents) {
        let listener = match self.bound {
            Some(listener) => listener,
            None => bind(self.server, self.address, &events).await,
        };
        match telemetry::serve(listener, router).await {}
    }
}

async fn bind(server: &TcpServer, address: SocketAddr, events: &NodeEvents) -> TcpListener {
    let TcpServer { what, flag, reason } = server;
    let mut reported = None;
    loop {
        match telemetry::listen_in_both_families(address) {
            Ok(listener) => {
                tracing::info!(%address, "{what} server listens");
                return listener;
            }
            Err(error) => {
                let cause = error.kind();
                if reported != Some(cause) {
                    tracing::warn!(
                        %address, %error,
                        "{what} server cannot listen; free the port or choose another with {flag}; tried again every 5 s"
                    );
                    let note = format!("the {what} server cannot listen on {address}: {error}");
                    events.record(NodeEvent::failed_to_start(reason, note));
                    reported = Some(cause);
                }
            }
        }
        sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn kp_hc_21_a_port_in_use_is_retried_until_it_is_free() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "here" }));
        let port = Port::new(&HEALTH, address, false).unwrap();
        let (events, mut recorded) = NodeEvents::channel();
        let server = tokio::spawn(port.serve(router, events));
        // Time is paused: it advances only while every task sleeps, so these are real retries.
        sleep(RETRY * 3).await;
        assert!(!server.is_finished());
        let event = recorded.recv().await.unwrap();
        assert!(format!("{event:?}").contains("FailedToStartProxierHealthcheck"));
        assert!(recorded.try_recv().is_err(), "one Event for one cause");
        drop(taken);
        sleep(RETRY * 2).await;

        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        server.abort();
    }

    #[tokio::test]
    async fn kp_cf_18_with_hard_fail_a_port_in_use_is_an_error() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let error = Port::new(&METRICS, address, true).unwrap_err();
        let words = format!("the metrics server cannot listen on {address}: ");
        assert!(error.to_string().starts_with(&words), "{error}");
        drop(taken);
        let port = Port::new(&METRICS, address, true).unwrap();
        let second = TcpListener::bind(address).await;
        assert!(second.is_err(), "{port:?} has the address");
    }
}
