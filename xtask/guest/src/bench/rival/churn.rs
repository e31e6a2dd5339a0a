//! Rolling updates: whole EndpointSlices replaced at a steady pace, and how far the proxy lags behind.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use guest_wire::report::Churn;

use super::RivalArgs;
use super::api::Api;
use super::probe::Probe;
use super::proxy::Proxy;
use crate::say;

/// Endpoints replaced in a second.
const RATE: u32 = 1_000;
/// Writers at the same time: one waits for the API server while others write.
const WRITERS: u32 = 4;
/// How often the probed endpoint moves meanwhile.
const FLIPS: Duration = Duration::from_secs(2);

/// Replaces endpoints for `duration`.
pub(crate) fn run(
    args: &RivalArgs,
    probe: &mut Probe,
    proxy: &Proxy,
    duration: Duration,
) -> Result<Churn> {
    let (api, written) = (probe.api(), AtomicU32::new(0));
    let begin = Instant::now();
    let before = proxy.cpu()?;
    let lags = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|nth| {
                scope.spawn({
                    let written = &written;
                    move || write(args, api, nth, begin + duration, written)
                })
            })
            .collect();
        let lags = lags(probe, begin + duration)?;
        for writer in writers {
            writer.join().ok().context("a writer panicked")??;
        }
        Ok::<_, anyhow::Error>(lags)
    })?;
    let elapsed = begin.elapsed().as_secs_f64();
    let cpu = proxy.cpu()?.saturating_sub(before).as_secs_f64();
    let changes = written.into_inner();
    let replaced = f64::from(changes * args.endpoints);
    say(&format!(
        "churn: {:.0} endpoints a second, {:.1} % of a core",
        replaced / elapsed,
        100.0 * cpu / elapsed
    ));
    Ok(Churn {
        seconds: elapsed,
        changes,
        replaced,
        cpu,
        eager: 0.0,
        lags,
    })
}

/// Moves the probed endpoint again and again.
fn lags(probe: &mut Probe, end: Instant) -> Result<Vec<f64>> {
    let mut lags = Vec::new();
    while Instant::now() < end {
        let begin = Instant::now();
        lags.push(probe.flip()?.as_secs_f64());
        thread::sleep(FLIPS.saturating_sub(begin.elapsed()));
    }
    Ok(lags)
}

/// Writes every `WRITERS`th change at its time.
fn write(args: &RivalArgs, api: Api, nth: u32, end: Instant, written: &AtomicU32) -> Result<()> {
    let pause = Duration::from_secs(1) * args.endpoints * WRITERS / RATE;
    let mut due = Instant::now() + pause * nth / WRITERS;
    let mut change = nth;
    while due < end {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let service = change % args.services;
        // Every round moves the pods of a Service to other addresses.
        let round = change / args.services + 1;
        let addresses: Vec<String> = (0..args.endpoints)
            .map(|nth| address(service * args.endpoints + nth, round).to_string())
            .collect();
        api.set_endpoints(&format!("s-{service:05}"), &addresses)?;
        written.fetch_add(1, Ordering::Relaxed);
        change += WRITERS;
        due += pause;
    }
    Ok(())
}

/// The address of a pod after `round` moves, in a range of its own for even and odd rounds.
pub(super) fn address(pod: u32, round: u32) -> Ipv4Addr {
    let [_, b, c, d] = pod.to_be_bytes();
    let b = if round % 2 == 1 { 160 } else { 128 } + b;
    Ipv4Addr::new(10, b, c, d)
}
