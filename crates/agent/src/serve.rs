//! Serves HTTP over TCP, and retries if the port cannot be bound.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Pause before the port is tried again (KP-HC-21).
const RETRY: Duration = Duration::from_secs(5);

/// Serves `router` on `address` until the task is dropped. A port that cannot be bound is logged once and retried every
/// 5 s; nothing else waits for it.
pub async fn tcp(what: &'static str, flag: &'static str, address: SocketAddr, router: Router) {
    let listener = bind(what, flag, address).await;
    match telemetry::serve(listener, router).await {}
}

async fn bind(what: &str, flag: &str, address: SocketAddr) -> TcpListener {
    let mut reported = None;
    loop {
        match telemetry::listen(address) {
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
        let server = tokio::spawn(tcp("test", "--flag", address, router));
        // Time is paused: it advances only while every task sleeps, so these are real retries.
        sleep(RETRY * 3).await;
        assert!(!server.is_finished());
        drop(taken);
        sleep(RETRY * 2).await;

        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        server.abort();
    }
}
