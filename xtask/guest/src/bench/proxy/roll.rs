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

impl RollArgs {
    /// Serves until it is killed.
    pub(crate) fn run(&self) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        crate::output::print(&listener.local_addr()?.to_string())?;
        for client in listener.incoming() {
            self.answer(client?)?;
        }
        Ok(())
    }

    fn answer(&self, mut client: TcpStream) -> Result<()> {
        let mut seconds = String::new();
        BufReader::new(&client).read_line(&mut seconds)?;
        let end = Instant::now() + Duration::from_secs(seconds.trim().parse()?);
        let changes = self.write_until(end)?;
        writeln!(client, "{changes}")?;
        Ok(())
    }

    fn write_until(&self, end: Instant) -> Result<u32> {
        let written = AtomicU32::new(0);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|nth| {
                    let written = &written;
                    scope.spawn(move || self.write(nth, end, written))
                })
                .collect();
            for writer in writers {
                writer.join().ok().context("a writer panicked")??;
            }
            Ok(written.load(Ordering::Relaxed))
        })
    }

    /// Writes every `WRITERS`th change when it is due.
    fn write(&self, nth: u32, end: Instant, written: &AtomicU32) -> Result<()> {
        let api = Api::new(self.api);
        let pause = Duration::from_secs(1) * self.endpoints * WRITERS / RATE;
        let mut due = Instant::now() + pause * nth / WRITERS;
        let mut change = nth;
        while due < end {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let service = change % self.services;
            // Every round moves the pods of a Service to other addresses.
            let round = change / self.services + 1;
            let addresses: Vec<String> = (0..self.endpoints)
                .map(|nth| address(service * self.endpoints + nth, round).to_string())
                .collect();
            api.set_endpoints(&format!("s-{service:05}"), &addresses)?;
            written.fetch_add(1, Ordering::Relaxed);
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
