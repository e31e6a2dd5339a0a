//! Writes to the API server through the host's `kubectl proxy`, which needs neither TLS nor a token.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The EndpointSlices that `kubernetes fill` creates.
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices/";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Api {
    address: SocketAddr,
}

impl Api {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    /// Replaces the endpoints of an `EndpointSlice`.
    pub(crate) fn set_endpoints(self, slice: &str, addresses: &[String]) -> Result<()> {
        let endpoints: Vec<Value> = addresses
            .iter()
            .enumerate()
            .map(|(nth, address)| {
                json!({
                    "addresses": [address],
                    "conditions": {"ready": true},
                    "nodeName": format!("n{}", nth % 9),
                    "zone": format!("z{}", nth % 9 % 3),
                })
            })
            .collect();
        let body = json!({ "endpoints": endpoints }).to_string();
        self.patch(&format!("{SLICES}{slice}"), &body)
            .with_context(|| format!("the EndpointSlice bench/{slice}"))
    }

    fn patch(self, path: &str, body: &str) -> Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        write!(
            stream,
            "PATCH {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/merge-patch+json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split_whitespace().nth(1).unwrap_or_default();
        ensure!(status == "200", "{answer}");
        Ok(())
    }
}
