//! `guest load`: a client. It asks for the server's name repeatedly, each time over a new connection (or from a new UDP
//! port), and counts the answers by name and the failures by cause. After SIGTERM it finishes the current requests and
//! prints the counts.

use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use guest_wire::RequestCounts;

use crate::source::{first_port, next_free, unspecified};
use crate::termination::Termination;
use crate::{lookup, sctp};

/// Options of `guest load`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: LoadTarget,
    /// Number of connections; without it, until standard input ends.
    #[arg(long)]
    connections: Option<u64>,
    /// Send datagrams instead of connecting.
    #[arg(long)]
    udp: bool,
    /// Make SCTP associations instead of TCP connections.
    #[arg(long, conflicts_with = "udp")]
    sctp: bool,
    /// Number of concurrent connections.
    #[arg(long, default_value_t = 1)]
    parallel: usize,
    /// Most connections per second, for each of the concurrent ones.
    #[arg(long)]
    rate: Option<f64>,
    /// Milliseconds to wait for an answer before it counts as failed: the kernel sends a lost packet again after 1 s and
    /// after 3 s.
    #[arg(long, default_value_t = 5000)]
    patience: u64,
    /// Format of the result.
    #[arg(short, long, default_value = "text")]
    output: Output,
    /// Also print the counts so far, at this interval.
    #[arg(long, value_name = "SECONDS")]
    every: Option<u64>,
}

/// Where to connect to.
#[derive(clap::Args)]
struct LoadTarget {
    /// Address and port to connect to.
    #[arg(long = "target", required_unless_present = "name")]
    address: Option<SocketAddr>,
    /// Ask for this name before each connection, and connect to the first address of the answer.
    #[arg(long, conflicts_with = "address", requires_all = ["port", "name_server"])]
    name: Option<String>,
    /// The port at the addresses of the name.
    #[arg(long)]
    port: Option<u16>,
    /// The DNS server to ask.
    #[arg(long)]
    name_server: Option<SocketAddr>,
}

impl LoadTarget {
    /// Returns the address, or asks for it.
    fn resolve(&self, patience: Duration) -> std::io::Result<SocketAddr> {
        match (self, self.address) {
            (_, Some(address)) => Ok(address),
            (
                Self {
                    name: Some(name),
                    port: Some(port),
                    name_server: Some(server),
                    ..
                },
                None,
            ) => {
                let address = lookup::first_address(name, *server, patience)?;
                Ok(SocketAddr::new(address, *port))
            }
            _ => Err(std::io::Error::other("there is no --target")),
        }
    }
}

/// Format of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// One line for each name.
    Text,
    /// One JSON object.
    Json,
}

/// Runs the load and prints the counts; fails when a request failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let tally = measure(args)?;
    print(args.output, &tally)?;
    Ok(ExitCode::from(u8::from(tally.failed > 0)))
}

#[expect(clippy::print_stdout, reason = "the result of a command-line program")]
fn print(output: Output, tally: &RequestCounts) -> anyhow::Result<()> {
    match output {
        Output::Text => print!("{tally}"),
        Output::Json => println!("{}", serde_json::to_string(tally)?),
    }
    Ok(())
}

fn measure(args: &Args) -> anyhow::Result<RequestCounts> {
    let remaining = RemainingRequests {
        stop: stop_flag(args.connections.is_none())?,
        count: AtomicU64::new(args.connections.unwrap_or(u64::MAX)),
        port: AtomicU16::new(first_port()),
    };
    let counts = SharedCounts::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..args.parallel)
            .map(|_| scope.spawn(|| client(args, &remaining, &counts)))
            .collect();
        if let Some(seconds) = args.every {
            let pause = Duration::from_secs(seconds);
            while clients.iter().any(|client| !client.is_finished()) {
                std::thread::sleep(pause);
                print(args.output, &counts.so_far())?;
            }
        }
        Ok(())
    })
    .map(|()| counts.so_far())
}

/// The counts of all clients.
struct SharedCounts {
    began: Instant,
    tally: Mutex<RequestCounts>,
}

impl SharedCounts {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            tally: Mutex::default(),
        }
    }

    fn record(&self, answer: std::io::Result<String>, took: Duration) {
        self.lock().record(answer, took);
    }

    fn so_far(&self) -> RequestCounts {
        let mut tally = self.lock().clone();
        tally.seconds = self.began.elapsed().as_secs_f64();
        tally
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RequestCounts> {
        // The counts are complete even if a client panicked.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests that are still to be sent, shared by all clients.
struct RemainingRequests {
    stop: Arc<AtomicBool>,
    count: AtomicU64,
    /// The source port of the next datagram.
    port: AtomicU16,
}

impl RemainingRequests {
    /// Reserves one request; returns false when none remains.
    fn claim(&self) -> bool {
        let decrement = |count: u64| count.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed) && self.count.fetch_update(set, fetch, decrement).is_ok()
    }
}

/// Sends one request after the other until none remains.
fn client(args: &Args, remaining: &RemainingRequests, counts: &SharedCounts) {
    let patience = Duration::from_millis(args.patience);
    let pause = args.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
    while remaining.claim() {
        let asked = Instant::now();
        let target = args.target.resolve(patience);
        let answer = target.and_then(|target| request(args, target, patience, &remaining.port));
        counts.record(answer, asked.elapsed());
        if let Some(rest) = pause.and_then(|pause| pause.checked_sub(asked.elapsed())) {
            std::thread::sleep(rest);
        }
    }
}

/// Returns a flag that SIGTERM sets, and with `watch` also the end of standard input.
fn stop_flag(watch: bool) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let termination = Termination::listen()?;
    raise_after(&stop, move || drop(termination.wait()));
    if watch {
        // An input that cannot be read counts as ended.
        raise_after(&stop, || {
            drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        });
    }
    Ok(stop)
}

fn raise_after(flag: &Arc<AtomicBool>, wait: impl FnOnce() + Send + 'static) {
    let flag = Arc::clone(flag);
    std::thread::spawn(move || {
        wait();
        flag.store(true, Ordering::Relaxed);
    });
}

/// Sends one request and returns the server's name.
fn request(
    args: &Args,
    target: SocketAddr,
    patience: Duration,
    port: &AtomicU16,
) -> std::io::Result<String> {
    if args.udp {
        return datagram(target, patience, port);
    }
    let stream = if args.sctp {
        next_free(port, |port| sctp::connect(target, port, patience))
    } else {
        TcpStream::connect_timeout(&target, patience)
    };
    read(stream?, patience)
}

fn read(mut stream: TcpStream, patience: Duration) -> std::io::Result<String> {
    stream.set_read_timeout(Some(patience))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    whole(&answer)
}

fn datagram(target: SocketAddr, patience: Duration, port: &AtomicU16) -> std::io::Result<String> {
    let socket = next_free(port, |port| UdpSocket::bind((unspecified(target), port)))?;
    socket.connect(target)?;
    socket.set_read_timeout(Some(patience))?;
    socket.send(b"?")?;
    let mut answer = [0; 2048];
    let length = socket.recv(&mut answer)?;
    whole(&String::from_utf8_lossy(
        answer.get(..length).unwrap_or_default(),
    ))
}

/// Returns the name in a complete answer.
fn whole(answer: &str) -> std::io::Result<String> {
    answer
        .strip_suffix('\n')
        .map(str::to_owned)
        .ok_or_else(|| std::io::Error::other("the answer was cut short"))
}
