//! Changes an endpoint through the API server, and finds when answers have it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use super::message::{self, connected_to};
use super::name_server::RunningNameServer;

/// How long an answer may take that should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two questions. It is the resolution.
const PAUSE: Duration = Duration::from_micros(200);

/// The pause before a change: `ipvs-topo dns` gathers changes that follow each other.
const QUIET: Duration = Duration::from_millis(500);

/// The slice of the Service whose endpoint changes.
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices/changing";

/// Changes of one endpoint through `kubectl proxy`.
pub(super) struct EndpointChanges {
    port: u16,
    count: u8,
}

impl EndpointChanges {
    pub(super) fn through(port: u16) -> Self {
        Self { port, count: 0 }
    }

    /// Gives the endpoint another address; returns the seconds from the request to the first answer of each server.
    pub(super) fn change(&mut self, servers: &[RunningNameServer]) -> anyhow::Result<Vec<f64>> {
        self.count = self.count.wrapping_add(1);
        let address = Ipv4Addr::new(10, 127, 0, self.count);
        let sockets = servers
            .iter()
            .map(|server| connected_to(server.address, PATIENCE));
        let sockets = sockets.collect::<anyhow::Result<Vec<_>>>()?;
        sleep(QUIET);
        let begin = Instant::now();
        let mut api = patch(self.port, address)?;
        let mut seconds: Vec<Option<f64>> = servers.iter().map(|_| None).collect();
        while seconds.iter().any(Option::is_none) {
            if begin.elapsed() > PATIENCE {
                finish(&mut api)?;
                bail!("no answer has {address}: {seconds:?}");
            }
            for (socket, seconds) in sockets.iter().zip(&mut seconds) {
                let answer = message::answer(socket, message::CHANGING_NAME);
                let found = answer.is_some_and(|answer| message::has_address(&answer, address));
                if seconds.is_none() && found {
                    *seconds = Some(begin.elapsed().as_secs_f64());
                }
            }
            sleep(PAUSE);
        }
        finish(&mut api)?;
        Ok(seconds.into_iter().flatten().collect())
    }
}

/// Sends the change, and returns the connection without waiting for the answer.
fn patch(port: u16, address: Ipv4Addr) -> anyhow::Result<TcpStream> {
    let body =
        format!(r#"[{{"op":"replace","path":"/endpoints/0/addresses","value":["{address}"]}}]"#);
    let length = body.len();
    let request = format!(
        "PATCH {SLICE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json-patch+json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// Fails if the API server did not accept the change.
fn finish(api: &mut TcpStream) -> anyhow::Result<()> {
    let mut answer = String::new();
    api.read_to_string(&mut answer)?;
    ensure!(
        answer.starts_with("HTTP/1.1 200"),
        "the API server: {answer}"
    );
    Ok(())
}
