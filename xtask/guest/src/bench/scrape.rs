//! Reads metrics over HTTP, as a monitoring system does.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// The samples of one scrape by `name{labels}`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(BTreeMap<String, f64>);

impl Samples {
    /// Returns the sample with exactly this name and these labels.
    pub(crate) fn get(&self, series: &str) -> Result<f64> {
        self.0
            .get(series)
            .copied()
            .with_context(|| format!("the agent has no metric `{series}`"))
    }

    /// Returns the sum of all samples with this name and any labels; 0 if there is none.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.0
            .iter()
            .filter(|(series, _)| series.split('{').next() == Some(name))
            .map(|(_, value)| value)
            .sum()
    }
}

/// Fetches `/metrics` from `address`.
pub(crate) fn metrics(address: SocketAddr) -> Result<Samples> {
    Ok(parse(&get(address, "/metrics")?))
}

/// Returns the body of a GET; an error unless the status is 200.
pub(crate) fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: bench\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("{path}: the answer has no head"))?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if status != "200" {
        bail!("{path}: HTTP status {status}");
    }
    Ok(body.to_owned())
}

fn parse(exposition: &str) -> Samples {
    let samples = exposition.lines().filter(|line| !line.starts_with('#'));
    Samples(
        samples
            .filter_map(|line| {
                // Labels may contain spaces, the value never does. The agent exposes no exemplars and timestamps.
                let (series, value) = line.rsplit_once(' ')?;
                Some((series.to_owned(), value.parse().ok()?))
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_name_and_summed_over_labels() {
        let samples = parse(
            "# TYPE writes counter\nwrites_total{step=\"add server\",result=\"done\"} 3\n\
             writes_total{step=\"edit\",result=\"done\"} 4\nready 1\n# EOF\n",
        );
        assert!((samples.sum("writes_total") - 7.0).abs() < f64::EPSILON);
        assert!((samples.get("ready").unwrap() - 1.0).abs() < f64::EPSILON);
        assert!(samples.get("writes_total").is_err(), "needs its labels");
    }
}
