//! An HTTP server for ports that anybody may reach: a client that sends half a request costs little and not for long.
//!
//! A connection is good for one request. Of those beyond [`MOST`] the oldest that has not sent its request is dropped:
//! a new one is always taken, since it may be the kubelet's.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::{sleep, timeout};

/// Connections at the same time.
const MOST: usize = 128;
/// How long a client may take to send the head of its request.
const HEAD: Duration = Duration::from_secs(5);
/// How long a whole connection may take, with a slow reader at its other end.
const WHOLE: Duration = Duration::from_secs(30);
/// Between two tries when the process has no file descriptor left.
const RETRY: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted. Beyond, the kernel drops the first packet of a client, which tries again after a
/// second and later: the kubelet would be late. What tokio takes by itself (128) is full in a moment.
const BACKLOG: u32 = 4_096;

/// Connections in the order in which they came.
#[derive(Default)]
struct Open(Vec<(AbortHandle, Arc<AtomicBool>)>);

impl Open {
    /// Drops what is over, and as many connections as there have to be fewer for one more.
    fn make_room(&mut self) {
        self.0.retain(|(task, _)| !task.is_finished());
        if self.0.len() < MOST {
            return;
        }
        let waits = |(_, asked): &(AbortHandle, Arc<AtomicBool>)| !asked.load(Ordering::Relaxed);
        let oldest = self.0.iter().position(waits).unwrap_or_default();
        let (task, _) = self.0.remove(oldest);
        task.abort();
    }
}

/// Listens on `address` for [`serve`].
///
/// # Errors
/// The address is taken, or not of this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // The port is free again as soon as a program before has ended.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Answers what `listener` accepts with `router`, until the future is dropped.
pub async fn serve(listener: TcpListener, router: Router) -> Infallible {
    let mut open = Open::default();
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            sleep(RETRY).await;
            continue;
        };
        open.make_room();
        let asked = Arc::new(AtomicBool::new(false));
        let task = tasks.spawn(connection(stream, router.clone(), Arc::clone(&asked)));
        open.0.push((task, asked));
        // Those that were accepted come first: one with its request is answered before thousands without.
        yield_now().await;
    }
}

/// Answers one request.
async fn connection(stream: TcpStream, router: Router, asked: Arc<AtomicBool>) {
    let router = TowerToHyperService::new(router);
    let answer = service_fn(move |request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        router.call(request)
    });
    let mut http = http1::Builder::new();
    let served = http
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    // Whatever went wrong is the client's trouble.
    drop(timeout(WHOLE, served).await);
}

/// Raises the soft limit of open files to the hard one: container runtimes differ, and 1,024 are soon used up.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // The limit that there is serves, too.
    let _raised = setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn ask(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET /livez HTTP/1.1\r\nHost: n1\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn livez_answers_with_five_thousand_half_open_requests_and_few_of_them_stay() {
        raise_file_limit();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/livez", get(|| async { "alive" }));
        let server = tokio::spawn(serve(listener, router));
        let mut half = Vec::new();
        for _ in 0..5_000 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // It may have been dropped already.
            drop(stream.write_all(b"GET /livez HTTP/1.1\r\nHost: ").await);
            half.push(stream);
        }
        let answer = ask(address).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with("alive"), "{answer}");
        // What the server dropped is at its end, or reset; what it holds has nothing to say.
        let is_open = |stream: &TcpStream| {
            let read = stream.try_read(&mut [0; 64]);
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        while half.iter().filter(|stream| is_open(stream)).count() > MOST {
            yield_now().await;
        }
        server.abort();
    }

    #[tokio::test]
    async fn a_thousand_clients_that_come_at_once_wait_for_no_second_try() {
        raise_file_limit();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // Nothing is accepted meanwhile.
        let connect =
            |_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(900));
        let connected: Result<Vec<_>, _> = (0..1_000).map(connect).collect();
        assert_eq!(connected.unwrap().len(), 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_request_is_dropped_after_five_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, Router::new()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        server.abort();
    }
}
