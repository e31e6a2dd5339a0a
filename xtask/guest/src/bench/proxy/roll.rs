//! `guest bench roll`: replaces whole EndpointSlices at a constant rate. It runs on the host, so that writing costs the
//! guest nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::api::Api;

/// Endpoints replaced in a second.
const RATE: u32 = 1_000;
/// Number of concurrent writers: one waits for the API server while others write.
const WRITERS: u32 = 4;

/// `guest bench roll`: prints its address. A client sends a number of seconds; the program replaces endpoints for that
/// time and answers with the number of slices that it wrote.
#[derive(clap::Args)]
pub(crate) struct RollArgs {
    /// Address of `kubectl proxy`.
    #[arg(long)]
    api: SocketAddr,
    /// Number of Services in the cluster, without the probed one.
    #[arg(long)]
    services: u32,
    /// Number of endpoints of each Service.
    #[arg(long)]
    endpoints: u32,
}

/// What has been written since the start.
#[derive(Default)]
struct WrittenChanges {
    /// Number of slices.
    slices: AtomicU32,
    /// The number of the next change. It continues over requests, because repeated changes would change nothing.
    next: AtomicU32,
}

impl RollArgs {
    /// Serves until it is killed.
    pub(crate) fn run(&self) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        crate::output::print(&listener.local_addr()?.to_string())?;
        let written = WrittenChanges::default();
        for client in listener.incoming() {
            self.answer(client?, &written)?;
        }
        Ok(())
    }

    fn answer(&self, mut client: TcpStream, written: &WrittenChanges) -> Result<()> {
        let mut seconds = String::new();
        BufReader::new(&client).read_line(&mut seconds)?;
        let end = Instant::now() + Duration::from_secs(seconds.trim().parse()?);
        let changes = self.write_until(end, written)?;
        writeln!(client, "{changes}")?;
        Ok(())
    }

    fn write_until(&self, end: Instant, written: &WrittenChanges) -> Result<u32> {
        let before = written.slices.load(Ordering::Relaxed);
        let first = written.next.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|nth| scope.spawn(move || self.write(first, nth, end, written)))
                .collect();
            for writer in writers {
                writer.join().ok().context("a writer panicked")??;
            }
            Ok(written.slices.load(Ordering::Relaxed) - before)
        })
    }

    /// Writes every `WRITERS`th change from `first + nth` on when it is due.
    fn write(&self, first: u32, nth: u32, end: Instant, written: &WrittenChanges) -> Result<()> {
        let api = Api::new(self.api);
        let pause = Duration::from_secs(1) * self.endpoints * WRITERS / RATE;
        let mut due = Instant::now() + pause * nth / WRITERS;
        let mut change = first + nth;
        while due < end {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let service = change % self.services;
            // Every round moves the pods of a Service to other addresses.
            let round = change / self.services + 1;
            let addresses: Vec<String> = (0..self.endpoints)
                .map(|nth| address(service * self.endpoints + nth, round).to_string())
                .collect();
            api.set_endpoints(&format!("s-{service:05}"), &addresses)?;
            written.slices.fetch_add(1, Ordering::Relaxed);
            written.next.fetch_max(change + 1, Ordering::Relaxed);
            change += WRITERS;
            due += pause;
        }
        Ok(())
    }
}

/// Returns the address of a pod after `round` moves. Even and odd rounds have separate ranges.
pub(super) fn address(pod: u32, round: u32) -> Ipv4Addr {
    let [_, b, c, d] = pod.to_be_bytes();
    let b = if round % 2 == 1 { 160 } else { 128 } + b;
    Ipv4Addr::new(10, b, c, d)
}
