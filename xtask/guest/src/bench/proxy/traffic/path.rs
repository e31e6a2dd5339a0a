//! `guest bench path`: a client that measures how fast one address answers.

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use guest_wire::report::PathReading;

use super::client::{EchoConnection, visit};

/// How long each of the three figures is measured.
const DURATION: Duration = Duration::from_secs(5);
/// Limit for one answer.
const LIMIT: Duration = Duration::from_secs(20);
/// Limit for the answer with `--once`.
const ONCE: Duration = Duration::from_secs(1);
/// Number of concurrent clients for new connections: two for each processor of the guest.
const CLIENTS: u32 = 4;
/// Number of segments that are sent before the answer; fewer than the initial congestion window of 10.
const BURST: u8 = 8;
/// The client's network card.
const LINK: &str = "/sys/class/net/eth0/statistics";

/// `guest bench path`.
#[derive(clap::Args)]
pub(crate) struct PathArgs {
    /// Address and port of the echo server, or of a virtual server in front of it.
    #[arg(long)]
    target: SocketAddr,
    /// Measure nothing: only open one connection.
    #[arg(long)]
    once: bool,
}

impl PathArgs {
    /// Returns the reading. With `--once` it is empty.
    pub(crate) fn run(&self) -> Result<PathReading> {
        if self.once {
            visit(self.target, ONCE)?;
            return Ok(PathReading::default());
        }
        let Visits {
            seconds: mut times,
            failed,
        } = self.connections();
        times.sort_by(f64::total_cmp);
        let begin = Instant::now();
        let concurrent = self.concurrent()?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(PathReading {
            connections: f64::from(u32::try_from(concurrent.seconds.len())?) / seconds,
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
            packets: self.packets()?,
            failed: failed + concurrent.failed,
        })
    }

    /// Opens one connection after the other.
    fn connections(&self) -> Visits {
        let end = Instant::now() + DURATION;
        let mut connections = Visits::default();
        while Instant::now() < end {
            let begin = Instant::now();
            if visit(self.target, LIMIT).is_ok() {
                connections.seconds.push(begin.elapsed().as_secs_f64());
            } else {
                connections.failed += 1;
            }
        }
        connections
    }

    /// Opens connections with several clients.
    fn concurrent(&self) -> Result<Visits> {
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| scope.spawn(|| self.connections()))
                .collect();
            let mut all = Visits::default();
            for client in clients {
                let connections = client.join().ok().context("a client panicked")?;
                all.seconds.extend(connections.seconds);
                all.failed += connections.failed;
            }
            Ok(all)
        })
    }

    /// Exchanges bytes on one connection and returns the packets per second that the network card counts.
    fn packets(&self) -> Result<f64> {
        let mut connection = EchoConnection::open(self.target, LIMIT)?;
        connection.exchange(BURST)?;
        let before = counted()?;
        let begin = Instant::now();
        while begin.elapsed() < DURATION {
            connection.exchange(BURST)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let packets = u32::try_from(counted()? - before)?;
        Ok(f64::from(packets) / seconds)
    }
}

/// What clients measured.
#[derive(Default)]
struct Visits {
    /// The time of each connection.
    seconds: Vec<f64>,
    failed: u32,
}

/// Returns the packets that the network card has sent and received.
fn counted() -> Result<u64> {
    ["rx_packets", "tx_packets"]
        .into_iter()
        .map(|name| {
            let path = format!("{LINK}/{name}");
            let text = fs::read_to_string(&path).with_context(|| path.clone())?;
            text.trim().parse::<u64>().context(path)
        })
        .sum()
}

/// Returns the smallest of the sorted `values` that at least `percent` percent of them do not exceed.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let rank = (values.len() * percent).div_ceil(100);
    let value = values.get(rank.saturating_sub(1));
    value.copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the values are copied")]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), 100.0);
        assert_eq!(percentile(&values, 99), 198.0);
        assert_eq!(percentile(&[7.0], 99), 7.0);
        assert!(percentile(&[], 50).is_nan());
    }
}
