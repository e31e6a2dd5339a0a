//! An HTTP server for ports and unix sockets that a hostile client can reach: an incomplete request costs little and ends
//! soon.
//!
//! A connection serves one request. Beyond [`MAX_CONNECTIONS`] connections the server drops the oldest one that has not
//! sent its request. It always accepts a new connection, because that may be the kubelet's.
//!
//! A connection with a [`LongLived`] response is not counted and has no time limit.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_ipv6_v6only;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::{sleep, timeout};

/// Concurrent connections.
const MAX_CONNECTIONS: usize = 128;
/// Time limit for a client to send the head of its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest head of a request, in bytes. hyper's own limit of 400 KiB for each connection is too much memory.
const MAX_HEAD: usize = 16 * 1024;
/// Time limit for a whole connection, with a slow reader at the other end.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two accept attempts while the process has no free file descriptor.
const RETRY: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted. If the queue is full, the kernel drops a client's SYN, and the client retries
/// after a second or more: the kubelet's probe would be late. A burst of clients fills tokio's default (128) at once.
const BACKLOG: u32 = 4_096;

/// A listening socket for [`serve`].
pub trait StreamListener {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Accepts a connection.
    ///
    /// # Errors
    /// As `accept(2)`; the process may have no free file descriptor.
    fn accept_stream(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl StreamListener for TcpListener {
    type Stream = TcpStream;

    async fn accept_stream(&self) -> io::Result<TcpStream> {
        Ok(self.accept().await?.0)
    }
}

impl StreamListener for UnixListener {
    type Stream = UnixStream;

    async fn accept_stream(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

/// The extension of a response whose body is meant to stay open. The handler limits the number of such responses.
#[derive(Debug, Clone, Copy)]
pub struct LongLived;

/// A limit of open connections. Servers with clones of it share it.
#[derive(Debug, Clone)]
pub struct ConnectionLimit(Arc<Mutex<OpenConnections>>);

impl ConnectionLimit {
    /// Beyond `limit` connections the oldest one that has not sent its request is dropped for each new one.
    pub fn new(limit: usize) -> Self {
        let open = Vec::new();
        Self(Arc::new(Mutex::new(OpenConnections { limit, open })))
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        // No code that holds the lock panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct OpenConnection {
    task: AbortHandle,
    state: Arc<ConnectionState>,
}

/// How far a connection is.
#[derive(Debug, Default)]
struct ConnectionState {
    /// The request is there.
    asked: AtomicBool,
    /// The response is [`LongLived`].
    long_lived: AtomicBool,
}

impl OpenConnection {
    fn counts(&self) -> bool {
        !self.task.is_finished() && !self.state.long_lived.load(Ordering::Relaxed)
    }

    fn waits(&self) -> bool {
        !self.state.asked.load(Ordering::Relaxed)
    }
}

/// Open connections, oldest first.
#[derive(Debug)]
struct OpenConnections {
    limit: usize,
    open: Vec<OpenConnection>,
}

impl OpenConnections {
    /// Forgets connections that do not count any more, and drops one if there is no room for another.
    fn make_room(&mut self) {
        self.open.retain(OpenConnection::counts);
        if self.open.len() < self.limit {
            return;
        }
        let oldest = self.open.iter().position(OpenConnection::waits);
        let dropped = self.open.remove(oldest.unwrap_or_default());
        dropped.task.abort();
    }
}

/// Listens on `address` for [`serve`].
///
/// # Errors
/// The address is in use, or no interface of this machine has it.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    bind(socket(address)?, address)
}

/// Does the same for the family of the address alone: `[::]` leaves IPv4 to another listener.
///
/// # Errors
/// As [`listen`].
pub fn listen_in_family(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    if address.is_ipv6() {
        set_ipv6_v6only(&socket, true)?;
    }
    bind(socket, address)
}

/// Listens on `address` for [`serve`]. As for kube-proxy (`net.Listen` of Go), `0.0.0.0` stands for the addresses of both
/// families; for those of IPv4 if the kernel has no IPv6.
///
/// # Errors
/// As [`listen`].
pub fn listen_in_both_families(address: SocketAddr) -> io::Result<TcpListener> {
    if address.ip() != Ipv4Addr::UNSPECIFIED {
        return listen(address);
    }
    let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port()));
    let listener = TcpSocket::new_v6().and_then(|socket| {
        set_ipv6_v6only(&socket, false)?;
        bind(socket, all)
    });
    match listener {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => listen(address),
        listener => listener,
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

fn bind(socket: TcpSocket, address: SocketAddr) -> io::Result<TcpListener> {
    // The port can be bound again as soon as the previous process has exited.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves the connections that `listener` accepts with `router`, until the future is dropped.
pub async fn serve(listener: impl StreamListener, router: Router) -> Infallible {
    serve_within(listener, router, ConnectionLimit::new(MAX_CONNECTIONS)).await
}

/// Does the same with a limit in addition that several servers share.
pub async fn serve_within(
    listener: impl StreamListener,
    router: Router,
    shared: ConnectionLimit,
) -> Infallible {
    let limits = [ConnectionLimit::new(MAX_CONNECTIONS), shared];
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok(stream) = listener.accept_stream().await else {
            sleep(RETRY).await;
            continue;
        };
        for limit in &limits {
            limit.open().make_room();
        }
        let state = Arc::new(ConnectionState::default());
        let task = tasks.spawn(connection(stream, router.clone(), Arc::clone(&state)));
        for limit in &limits {
            limit.open().open.push(OpenConnection {
                task: task.clone(),
                state: Arc::clone(&state),
            });
        }
        // Lets accepted connections run first: a complete request is answered before thousands of incomplete ones.
        yield_now().await;
    }
}

/// Serves one request.
async fn connection<S>(stream: S, router: Router, state: Arc<ConnectionState>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let router = TowerToHyperService::new(router);
    let answer = service_fn(|request: Request<Incoming>| {
        state.asked.store(true, Ordering::Relaxed);
        let response = router.call(request);
        async {
            let response = response.await?;
            let is_long_lived = response.extensions().get::<LongLived>().is_some();
            state.long_lived.store(is_long_lived, Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    let served = http
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    let mut served = pin!(served);
    // An error here is the client's: a reset or a timeout.
    let is_late = timeout(CONNECTION_TIMEOUT, &mut served).await.is_err();
    if is_late && state.long_lived.load(Ordering::Relaxed) {
        drop(served.await);
    }
}

/// Raises the soft limit of open files to the hard limit: container runtimes set different ones, and 1,024 are too few.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // On failure the present limit stays.
    let _raised = setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::Extension;
    use axum::body::Body;
    use axum::routing::get;
    use hyper::body::{Body as HttpBody, Bytes, Frame};
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

    /// A connection that the server dropped is closed or reset; one that it holds has no data to read.
    fn is_open(stream: &TcpStream) -> bool {
        let read = stream.try_read(&mut [0; 64]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
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
            // The server may have dropped the connection already.
            drop(stream.write_all(b"GET /livez HTTP/1.1\r\nHost: ").await);
            half.push(stream);
        }
        let answer = ask(address).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with("alive"), "{answer}");
        while half.iter().filter(|stream| is_open(stream)).count() > MAX_CONNECTIONS {
            yield_now().await;
        }
        server.abort();
    }

    #[tokio::test]
    async fn servers_share_a_limit_and_the_oldest_silent_client_gives_way() {
        let limit = ConnectionLimit::new(4);
        let router = Router::new().route("/livez", get(|| async { "alive" }));
        let mut servers = JoinSet::new();
        let mut addresses = Vec::new();
        for _ in 0..2 {
            let listener = listen_in_family("127.0.0.1:0".parse().unwrap()).unwrap();
            addresses.push(listener.local_addr().unwrap());
            servers.spawn(serve_within(listener, router.clone(), limit.clone()));
        }
        let mut silent = Vec::new();
        for _ in 0..4 {
            silent.push(TcpStream::connect(addresses[0]).await.unwrap());
        }
        assert!(ask(addresses[1]).await.ends_with("alive"));
        let oldest = silent.first_mut().unwrap();
        // The end of the data, or a reset.
        assert_eq!(oldest.read(&mut [0; 1]).await.unwrap_or(0), 0);
    }

    #[tokio::test]
    async fn the_unspecified_address_of_ipv4_stands_for_both_families() {
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let listener = listen_in_both_families(unspecified).unwrap();
        let port = listener.local_addr().unwrap().port();
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        for address in [v4, v6] {
            TcpStream::connect(address).await.unwrap();
        }
        let again = listen_in_both_families(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let one = listen_in_both_families(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        assert!(one.local_addr().unwrap().is_ipv4());
    }

    #[tokio::test]
    async fn one_family_leaves_the_other_to_another_listener() {
        let v6 = listen_in_family("[::]:0".parse().unwrap()).unwrap();
        let port = v6.local_addr().unwrap().port();
        listen_in_family(SocketAddr::from(([0; 4], port))).unwrap();
    }

    #[tokio::test]
    async fn a_thousand_clients_that_come_at_once_wait_for_no_second_try() {
        raise_file_limit();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // The server accepts nothing during the test.
        let connect =
            |_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(900));
        let connected: Result<Vec<_>, _> = (0..1_000).map(connect).collect();
        assert_eq!(connected.unwrap().len(), 1_000);
    }

    /// A router with a response that never ends, one that takes 20 s, and one that takes a minute.
    fn slow_router() -> Router {
        let hold = || async { (Extension(LongLived), Body::new(Endless)) };
        let slow = |seconds| {
            get(move || async move {
                sleep(Duration::from_secs(seconds)).await;
                "done"
            })
        };
        Router::new()
            .route("/hold", get(hold))
            .route("/slow", slow(20))
            .route("/too-slow", slow(60))
    }

    /// A body that never ends.
    struct Endless;

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }

    async fn request(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: n1\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn silent_clients_and_time_end_neither_a_slow_response_nor_a_long_lived_one() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let limit = ConnectionLimit::new(3);
        let server = tokio::spawn(serve_within(listener, slow_router(), limit));
        let mut held = Vec::new();
        for _ in 0..4 {
            let mut stream = request(address, "/hold").await;
            let mut line = [0; 15];
            stream.read_exact(&mut line).await.unwrap();
            assert_eq!(&line, b"HTTP/1.1 200 OK");
            held.push(stream);
        }
        let slow = request(address, "/slow").await;
        let too_slow = request(address, "/too-slow").await;
        let mut oldest = TcpStream::connect(address).await.unwrap();
        let _newest = TcpStream::connect(address).await.unwrap();
        assert_eq!(oldest.read(&mut [0; 1]).await.unwrap_or(0), 0);
        tokio::time::pause();
        assert!(rest(slow).await.ends_with("done"));
        assert_eq!(rest(too_slow).await, "");
        sleep(Duration::from_secs(3_600)).await;
        for stream in &held {
            // The rest of the head.
            assert!(stream.try_read(&mut [0; 1_024]).unwrap() > 0);
            assert!(is_open(stream));
        }
        server.abort();
    }

    #[tokio::test]
    async fn a_head_of_more_than_16_kib_is_refused() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, Router::new()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nx: {:a<1$}", "", MAX_HEAD);
        // The server reads it all, so that its response is not lost by a reset.
        stream
            .write_all(&head.as_bytes()[..MAX_HEAD])
            .await
            .unwrap();
        let answer = rest(stream).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        server.abort();
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
