//! Asks the program over HTTP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::program::{PATIENCE, Program};

/// The option that serves metrics.
pub(crate) const METRICS: [&str; 2] = ["--metrics-bind-address", "127.0.0.1:0"];

/// The option that serves health.
pub(crate) const HEALTH: [&str; 2] = ["--healthz-bind-address", "127.0.0.1:0"];

/// The status and the body of `GET path`.
pub(crate) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.parse().unwrap(), body.to_owned())
}

/// The metrics at one time.
pub(crate) struct Scrape(String);

impl Scrape {
    pub(crate) fn of(program: &Program) -> Self {
        let (status, text) = get(program.metrics.unwrap(), "/metrics");
        assert_eq!(status, 200);
        Self(text)
    }

    /// The lines of a metric, without its name, sorted.
    pub(crate) fn series(&self, name: &str) -> Vec<&str> {
        let lines = self.0.lines();
        let mut series: Vec<_> = lines
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'))
            .collect();
        series.sort_unstable();
        series
    }

    /// The value of a series, as it is written.
    pub(crate) fn value(&self, series: &str) -> &str {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_default()
    }
}
