//! Asks a server as fast as it answers.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::message::{Head, connected_to, question};
use super::name_server::RunningNameServer;
use super::query::QueryKind;
use super::readings::{LoadReading, LoadReadings};

/// How long one load lasts.
const DURATION: Duration = Duration::from_secs(4);

/// Queries that wait for an answer at a time.
const MANY: u16 = 64;

/// An answer that takes longer is lost.
const TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn measure(
    server: &RunningNameServer,
    query: QueryKind,
    services: u32,
) -> anyhow::Result<LoadReadings> {
    Ok(LoadReadings {
        query,
        many: load(server, query, services, MANY)?,
        single: load(server, query, services, 1)?,
    })
}

/// Keeps `at_a_time` queries waiting.
fn load(
    server: &RunningNameServer,
    query: QueryKind,
    services: u32,
    at_a_time: u16,
) -> anyhow::Result<LoadReading> {
    let socket = connected_to(server.address, TIMEOUT)?;
    let mut sent: Vec<Option<Instant>> = vec![None; usize::from(u16::MAX) + 1];
    let mut next = (0_u16, 0_u32);
    let mut ask = |sent: &mut [Option<Instant>]| -> anyhow::Result<()> {
        // A step that visits all Services, far from each other.
        next = (next.0.wrapping_add(1), next.1.wrapping_add(7_919));
        let message = question(next.0, &query.name(next.1 % services.max(1)));
        *sent.get_mut(usize::from(next.0)).context("no such id")? = Some(Instant::now());
        socket.send(&message)?;
        Ok(())
    };
    let (begin, cpu) = (Instant::now(), server.cpu()?);
    for _ in 0..at_a_time {
        ask(&mut sent)?;
    }
    let (mut times, mut lost) = (Vec::new(), 0);
    let mut buffer = [0; 4_096];
    while begin.elapsed() < DURATION {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                lost += u32::from(at_a_time);
                sent.fill(None);
                for _ in 0..at_a_time {
                    ask(&mut sent)?;
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let head =
            Head::read(buffer.get(..length).unwrap_or_default()).context("a short answer")?;
        let of_id = sent.get_mut(usize::from(head.id)).and_then(Option::take);
        let Some(of_id) = of_id else {
            continue;
        };
        times.push(of_id.elapsed().as_secs_f64() * 1e6);
        let (code, records) = (head.code, head.records);
        ensure!(
            query.is_answer(code, records),
            "{} answered a {query:?} query with the code {code} and {records} records",
            server.name
        );
        ask(&mut sent)?;
    }
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), server.cpu()? - cpu);
    times.sort_by(f64::total_cmp);
    Ok(LoadReading {
        queries: u32::try_from(times.len())?,
        seconds,
        cpu,
        p50: quantile(&times, 50),
        p99: quantile(&times, 99),
        lost,
    })
}

/// Returns the value at `percent` of sorted values.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let at = sorted.len() * percent / 100;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_sorted_values() {
        let values: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(values.get(100), Some(&quantile(&values, 50)));
        assert_eq!(values.get(198), Some(&quantile(&values, 99)));
        assert!(quantile(&[], 50).is_nan());
    }
}
