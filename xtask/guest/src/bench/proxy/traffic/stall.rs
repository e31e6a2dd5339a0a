//! `guest bench stall`: a client that measures the longest time without an answer, until its standard input ends.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use guest_wire::report::Stall;

use super::client::{EchoConnection, visit};

/// Limit for one answer. The kernel sends a lost packet again after 1 s and after 3 s.
const LIMIT: Duration = Duration::from_secs(5);
/// Pause between two exchanges, so that the client leaves the processors to the proxy.
const PAUSE: Duration = Duration::from_millis(1);

/// `guest bench stall`.
#[derive(clap::Args)]
pub(crate) struct StallArgs {
    /// Address and port of a virtual server in front of the echo server.
    #[arg(long)]
    target: SocketAddr,
}

impl StallArgs {
    /// Returns the longest stalls.
    pub(crate) fn run(&self) -> Result<Stall> {
        let begin = Instant::now();
        let stop = AtomicBool::new(false);
        let (established, new) = thread::scope(|scope| {
            let established = scope.spawn(|| self.established(&stop));
            let new = scope.spawn(|| longest(&stop, || visit(self.target, LIMIT)));
            // An input that cannot be read counts as ended.
            drop(io::copy(&mut io::stdin(), &mut io::sink()));
            stop.store(true, Ordering::Relaxed);
            let established = established.join().ok().context("a client panicked")??;
            let new = new.join().ok().context("a client panicked")?;
            anyhow::Ok((established, new))
        })?;
        Ok(Stall {
            seconds: begin.elapsed().as_secs_f64(),
            established: established.seconds,
            new: new.seconds,
            failed: established.failed + new.failed,
        })
    }

    /// Exchanges bytes on one connection, and on a new one when it fails.
    fn established(&self, stop: &AtomicBool) -> Result<Gap> {
        let mut open = Some(EchoConnection::open(self.target, LIMIT)?);
        Ok(longest(stop, || {
            let mut connection = match open.take() {
                Some(connection) => connection,
                None => EchoConnection::open(self.target, LIMIT)?,
            };
            connection.exchange(1)?;
            open = Some(connection);
            Ok(())
        }))
    }
}

/// The longest time between two answers.
#[derive(Default)]
struct Gap {
    seconds: f64,
    failed: u32,
}

/// Repeats `exchange` until `stop` is set.
fn longest(stop: &AtomicBool, mut exchange: impl FnMut() -> io::Result<()>) -> Gap {
    let mut gap = Gap::default();
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let answered = exchange().is_ok();
        gap.seconds = gap.seconds.max(last.elapsed().as_secs_f64());
        if answered {
            last = Instant::now();
        } else {
            gap.failed += 1;
        }
        thread::sleep(PAUSE);
    }
    gap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_lasts_over_failures_until_the_next_answer() {
        let stop = AtomicBool::new(false);
        let mut turn = 0;
        let gap = longest(&stop, || {
            turn += 1;
            match turn {
                2 | 3 => {
                    thread::sleep(Duration::from_millis(20));
                    Err(io::Error::other("refused"))
                }
                5 => {
                    stop.store(true, Ordering::Relaxed);
                    Ok(())
                }
                _ => Ok(()),
            }
        });
        assert_eq!(gap.failed, 2);
        assert!(gap.seconds >= 0.04, "{}", gap.seconds);
    }
}
