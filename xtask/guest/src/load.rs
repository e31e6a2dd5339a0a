//! `guest load`: a client. It asks for the server's name again and again, each time over a new
//! connection (or from a new UDP port), and counts the answers by name and the failures by cause.
//! Told to end, it finishes what is under way and tells what it counted.

use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use guest_wire::Tally;

use crate::ending::Ending;
use crate::sctp;
use crate::source::{first_port, next_free, unspecified};

/// Options of `guest load`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to connect to.
    #[arg(long)]
    target: SocketAddr,
    /// How many connections; without it, until standard input ends.
    #[arg(long)]
    connections: Option<u64>,
    /// Send datagrams instead of connecting.
    #[arg(long)]
    udp: bool,
    /// Make SCTP associations instead of TCP connections.
    #[arg(long, conflicts_with = "udp")]
    sctp: bool,
    /// How many connections are under way at the same time.
    #[arg(long, default_value_t = 1)]
    parallel: usize,
    /// At most so many connections a second, for each one under way.
    #[arg(long)]
    rate: Option<f64>,
    /// Milliseconds to wait for an answer before it counts as failed: a kernel that lost a packet sends it again after
    /// 1 s and after 3 s.
    #[arg(long, default_value_t = 5000)]
    patience: u64,
    /// How the result is printed.
    #[arg(short, long, default_value = "text")]
    output: Output,
    /// Print what was counted so far, too, each time so many seconds have passed.
    #[arg(long, value_name = "SECONDS")]
    every: Option<u64>,
}

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// One line for each name.
    Text,
    /// One JSON object.
    Json,
}

/// Runs the load and prints the tally; fails when a request did.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let tally = measure(args)?;
    print(args.output, &tally)?;
    Ok(ExitCode::from(u8::from(tally.failed > 0)))
}

#[expect(clippy::print_stdout, reason = "the result of a command-line program")]
fn print(output: Output, tally: &Tally) -> anyhow::Result<()> {
    match output {
        Output::Text => print!("{tally}"),
        Output::Json => println!("{}", serde_json::to_string(tally)?),
    }
    Ok(())
}

fn measure(args: &Args) -> anyhow::Result<Tally> {
    let left = Left {
        stop: stop_flag(args.connections.is_none())?,
        count: AtomicU64::new(args.connections.unwrap_or(u64::MAX)),
        port: AtomicU16::new(first_port()),
    };
    let sum = Sum::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..args.parallel)
            .map(|_| scope.spawn(|| client(args, &left, &sum)))
            .collect();
        if let Some(seconds) = args.every {
            let pause = Duration::from_secs(seconds);
            while clients.iter().any(|client| !client.is_finished()) {
                std::thread::sleep(pause);
                print(args.output, &sum.so_far())?;
            }
        }
        Ok(())
    })
    .map(|()| sum.so_far())
}

/// What all clients have counted.
struct Sum {
    began: Instant,
    tally: Mutex<Tally>,
}

impl Sum {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            tally: Mutex::default(),
        }
    }

    fn record(&self, answer: std::io::Result<String>, took: Duration) {
        self.lock().record(answer, took);
    }

    fn so_far(&self) -> Tally {
        let mut tally = self.lock().clone();
        tally.seconds = self.began.elapsed().as_secs_f64();
        tally
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tally> {
        // A client that panicked has counted whole requests before.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is still to be done, shared by all clients.
struct Left {
    stop: Arc<AtomicBool>,
    count: AtomicU64,
    /// The source port of the next datagram.
    port: AtomicU16,
}

impl Left {
    /// Takes one request from what is left; false when nothing is.
    fn take(&self) -> bool {
        let take_one = |count: u64| count.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed) && self.count.fetch_update(set, fetch, take_one).is_ok()
    }
}

/// One request after the other until nothing is left.
fn client(args: &Args, left: &Left, sum: &Sum) {
    let patience = Duration::from_millis(args.patience);
    let pause = args.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
    while left.take() {
        let asked = Instant::now();
        let answer = if args.udp {
            datagram(args.target, patience, &left.port)
        } else {
            connect(args, patience, &left.port).and_then(|stream| read(stream, patience))
        };
        sum.record(answer, asked.elapsed());
        if let Some(rest) = pause.and_then(|pause| pause.checked_sub(asked.elapsed())) {
            std::thread::sleep(rest);
        }
    }
}

/// A flag that is raised when the process is told to end, and at the end of standard input when `watch` says so.
fn stop_flag(watch: bool) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let ending = Ending::listen()?;
    raise_after(&stop, move || drop(ending.wait()));
    if watch {
        // An input that cannot be read has ended too.
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

fn connect(args: &Args, patience: Duration, port: &AtomicU16) -> std::io::Result<TcpStream> {
    if args.sctp {
        next_free(port, |port| sctp::connect(args.target, port, patience))
    } else {
        TcpStream::connect_timeout(&args.target, patience)
    }
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

/// The name in an answer that came whole.
fn whole(answer: &str) -> std::io::Result<String> {
    answer
        .strip_suffix('\n')
        .map(str::to_owned)
        .ok_or_else(|| std::io::Error::other("the answer was cut short"))
}
