//! `guest dns`: a client that asks a DNS server at a constant rate, each time from a new UDP port. It repeats a query
//! without an answer from the same port, as resolvers do, and reports who answered and how long answers were missing.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::AtomicU16;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use crate::dns_message::{question, records};
use crate::output;
use crate::source::{first_port, next_free, unspecified};

/// Options of `guest dns`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port of the server.
    #[arg(long)]
    server: SocketAddr,
    /// The name, whose A records are asked for.
    #[arg(long)]
    name: String,
    /// Seconds until the first query.
    #[arg(long, default_value_t = 0)]
    delay: u64,
    /// Queries per second.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Number of queries.
    #[arg(long)]
    queries: u32,
    /// Milliseconds until a query without an answer is sent again.
    #[arg(long, default_value_t = 250)]
    retry: u64,
    /// Milliseconds until a query without an answer has failed.
    #[arg(long, default_value_t = 10_000)]
    patience: u64,
}

/// The result, as one line of JSON. Milliseconds count from the first query.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct DnsReport {
    queries: u32,
    /// Queries without an answer to any of their sends.
    failed: u32,
    /// Queries that were sent again.
    retried: u32,
    /// The most sends of a query.
    most_sends: u32,
    /// The longest time from the first send of a query to its answer.
    longest_ms: u128,
    /// Refusals by a host where no server listens.
    refused: u32,
    /// Replies with an error, or without a record.
    errors: u32,
    /// The answers by the TTL of their first record, which differs from server to server.
    answers: BTreeMap<u32, u32>,
    /// When the first answer with this TTL came.
    first_answer_ms: BTreeMap<u32, u128>,
    /// When the first and the last of the queries that were sent again were sent for the first time.
    first_retried_ms: Option<u128>,
    last_retried_ms: Option<u128>,
}

/// Sends the queries, waits for their answers, and prints the report; fails when a query failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    raise_file_limit()?;
    std::thread::sleep(Duration::from_secs(args.delay));
    let mut load = DnsLoad {
        args,
        port: AtomicU16::new(first_port()),
        began: Instant::now(),
        open: Vec::new(),
        report: DnsReport::default(),
    };
    load.run()?;
    output::print(&serde_json::to_string(&load.report)?)?;
    Ok(ExitCode::from(u8::from(load.report.failed > 0)))
}

/// Raises the limit of open files as far as possible: each query without an answer has a socket.
fn raise_file_limit() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    Ok(setrlimit(Resource::Nofile, most)?)
}

/// A query that waits for its answer.
struct OpenQuery {
    socket: UdpSocket,
    id: u16,
    question: Vec<u8>,
    sends: u32,
    first_send: Instant,
    next_send: Instant,
}

struct DnsLoad<'a> {
    args: &'a Args,
    /// The source port of the next query.
    port: AtomicU16,
    began: Instant,
    open: Vec<OpenQuery>,
    report: DnsReport,
}

impl DnsLoad<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        while self.report.queries < self.args.queries || !self.open.is_empty() {
            self.start_due_queries()?;
            self.repeat_due_queries();
            for at in self.readable()?.into_iter().rev() {
                self.receive(at);
            }
        }
        Ok(())
    }

    /// When the next query is due; `None` after the last one.
    fn next_start(&self) -> Option<Instant> {
        let since = Duration::from_secs(1) * self.report.queries / self.args.rate;
        (self.report.queries < self.args.queries).then_some(self.began + since)
    }

    fn start_due_queries(&mut self) -> anyhow::Result<()> {
        while self.next_start().is_some_and(|due| due <= Instant::now()) {
            let server = self.args.server;
            let socket = next_free(&self.port, |port| {
                UdpSocket::bind((unspecified(server), port))
            })?;
            socket.connect(server)?;
            socket.set_nonblocking(true)?;
            let now = Instant::now();
            let id = u16::try_from(self.report.queries % 65_536)?;
            self.open.push(OpenQuery {
                socket,
                id,
                question: question(id, &self.args.name)?,
                sends: 0,
                first_send: now,
                next_send: now,
            });
            self.report.queries += 1;
        }
        Ok(())
    }

    /// Sends the queries that are due, and gives up those without an answer for too long.
    fn repeat_due_queries(&mut self) {
        let (now, retry) = (Instant::now(), Duration::from_millis(self.args.retry));
        let patience = Duration::from_millis(self.args.patience);
        for query in self.open.iter_mut().filter(|one| one.next_send <= now) {
            // A refusal of an earlier send may be reported here; it is counted when it is received.
            drop(query.socket.send(&query.question));
            query.sends += 1;
            query.next_send = now + retry;
            if query.sends == 2 {
                let since = query.first_send.duration_since(self.began).as_millis();
                self.report.retried += 1;
                self.report.first_retried_ms.get_or_insert(since);
                let last = self.report.last_retried_ms.get_or_insert(since);
                *last = since.max(*last);
            }
        }
        let before = self.open.len();
        self.open
            .retain(|query| now.duration_since(query.first_send) < patience);
        let failed = before - self.open.len();
        self.report.failed += u32::try_from(failed).unwrap_or(u32::MAX);
    }

    /// Waits until a reply arrives or a query is due. Returns the places of the queries with a reply.
    fn readable(&self) -> anyhow::Result<Vec<usize>> {
        let sends = self.open.iter().map(|query| query.next_send);
        let Some(due) = sends.chain(self.next_start()).min() else {
            return Ok(Vec::new());
        };
        let pause = due.saturating_duration_since(Instant::now());
        let sockets = self.open.iter();
        let mut sockets: Vec<PollFd<'_>> = sockets
            .map(|query| PollFd::from_borrowed_fd(query.socket.as_fd(), PollFlags::IN))
            .collect();
        poll(&mut sockets, Some(&Timespec::try_from(pause)?))?;
        let ready = sockets.iter().enumerate();
        let ready = ready.filter(|(_, socket)| !socket.revents().is_empty());
        Ok(ready.map(|(at, _)| at).collect())
    }

    /// Reads the reply to the query at this place.
    fn receive(&mut self, at: usize) {
        let Some(query) = self.open.get(at) else {
            return;
        };
        let mut buffer = [0; 2_048];
        let length = match query.socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) => {
                self.report.refused += u32::from(error.kind() == ErrorKind::ConnectionRefused);
                return;
            }
        };
        let reply = buffer.get(..length).unwrap_or_default();
        let Some(first) = records(reply, query.id)
            .ok()
            .and_then(|records| records.into_iter().next())
        else {
            self.report.errors += 1;
            return;
        };
        let took = query.first_send.elapsed().as_millis();
        let report = &mut self.report;
        report.longest_ms = report.longest_ms.max(took);
        report.most_sends = report.most_sends.max(query.sends);
        *report.answers.entry(first.ttl).or_default() += 1;
        let since = self.began.elapsed().as_millis();
        report.first_answer_ms.entry(first.ttl).or_insert(since);
        self.open.swap_remove(at);
    }
}
