//! Real sockets on loopback addresses.

use std::net::Ipv4Addr;
use std::num::NonZeroU16;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use topology_core::model::ObjectName;

use super::*;
use crate::health::{FamilyHealth, HealthState};

/// A proxy whose health the test sets, and which counts the queries.
#[derive(Clone, Default)]
struct Proxy(Arc<(Mutex<HealthState>, AtomicUsize)>);

impl HealthSource for Proxy {
    async fn health_state(&self) -> HealthState {
        self.0.1.fetch_add(1, Ordering::Relaxed);
        self.0.0.lock().unwrap().clone()
    }
}

impl Proxy {
    /// A change waits for more than a minute.
    fn hangs(&self) {
        let since = Timestamp::now() - SignedDuration::from_secs(70);
        let health = FamilyHealth {
            last_updated: since,
            oldest_pending: Some(since),
        };
        let mut state = self.0.0.lock().unwrap();
        state.families.insert("IPv4", health);
    }
}

struct World {
    ports: HealthPorts,
    proxy: Proxy,
    port: u16,
    task: JoinHandle<()>,
    recorded: tokio::sync::mpsc::Receiver<NodeEvent>,
}

impl World {
    async fn new() -> Self {
        let (ports, proxy) = (HealthPorts::default(), Proxy::default());
        let (events, recorded) = NodeEvents::channel();
        let unused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        Self {
            task: tokio::spawn(serve(ports.clone(), proxy.clone(), "n1".into(), events)),
            port: unused.local_addr().unwrap().port(),
            ports,
            proxy,
            recorded,
        }
    }

    fn set(&self, endpoints: usize) {
        let socket = (Ipv4Addr::LOCALHOST, self.port).into();
        let name = ObjectName::new("shop", "web");
        self.ports.replace(&name, [(socket, endpoints)].into());
    }

    /// Waits until the port is open.
    async fn connect(&self) -> TcpStream {
        loop {
            match TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await {
                Ok(stream) => return stream,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// Status line, headers in lower case, and body of the response to `request`.
    async fn ask(&self, request: &str) -> (String, String, serde_json::Value) {
        let mut stream = self.connect().await;
        let request = format!("{request} HTTP/1.1\r\nHost: n1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let (status, headers) = head.split_once("\r\n").unwrap();
        let body = serde_json::from_str(body).unwrap_or_default();
        (status.to_owned(), headers.to_lowercase(), body)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const OK: &str = "HTTP/1.1 200 OK";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable";

#[tokio::test]
async fn kp_hc_10_the_response_is_that_of_kube_proxy_on_any_path_and_method() {
    let world = World::new().await;
    world.set(2);
    let (status, headers, body) = world.ask("GET /healthz").await;
    assert_eq!(status, OK);
    for header in [
        "content-type: application/json",
        "x-content-type-options: nosniff",
        "x-load-balancing-endpoint-weight: 2",
    ] {
        assert!(headers.lines().any(|line| line == header), "{headers}");
    }
    let expected = serde_json::json!({
        "service": {"namespace": "shop", "name": "web"},
        "localEndpoints": 2,
        "serviceProxyHealthy": true,
    });
    assert_eq!(body, expected);
    for request in ["POST /any/path?x=1", "HEAD /", "OPTIONS *"] {
        assert_eq!(world.ask(request).await.0, OK, "{request}");
    }
}

#[tokio::test]
async fn kp_hc_10_without_local_endpoints_the_status_is_503_until_there_is_one() {
    let world = World::new().await;
    world.set(0);
    let (status, headers, body) = world.ask("GET /").await;
    assert_eq!(
        (status.as_str(), &body["localEndpoints"]),
        (UNAVAILABLE, &0.into())
    );
    let weight = "x-load-balancing-endpoint-weight: 0";
    assert!(headers.contains(weight), "{headers}");
    world.set(1);
    assert_eq!(world.ask("GET /").await.0, OK);
}

#[tokio::test]
async fn kp_hc_10_the_status_is_503_while_the_proxy_is_unhealthy() {
    let world = World::new().await;
    world.proxy.hangs();
    world.set(1);
    let (status, _, body) = world.ask("GET /").await;
    assert_eq!(status, UNAVAILABLE);
    assert_eq!(body["serviceProxyHealthy"], false);
}

#[tokio::test]
async fn d13_many_requests_query_the_loop_once_a_second() {
    let world = World::new().await;
    world.set(1);
    for _ in 0..50 {
        assert_eq!(world.ask("GET /").await.0, OK);
    }
    let queries = world.proxy.0.1.load(Ordering::Relaxed);
    assert!(queries < 10, "{queries}");
}

/// The attacker is any client that reaches the port.
#[tokio::test]
async fn five_thousand_clients_that_send_nothing_do_not_delay_a_check() {
    telemetry::raise_file_limit();
    let world = World::new().await;
    world.set(1);
    let mut idle = Vec::new();
    for _ in 0..5_000 {
        idle.push(world.connect().await);
    }
    assert_eq!(world.ask("GET /").await.0, OK);
}

#[tokio::test]
async fn kp_hc_13_a_port_that_another_process_has_causes_an_event_on_the_service() {
    let mut world = World::new().await;
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, world.port))
        .await
        .unwrap();
    world.set(1);
    let expected = NodeEvent::no_health_check(
        ObjectName::new("shop", "web"),
        format!(
            "node n1 cannot open the health check node port 127.0.0.1:{}: Address already in use (os error 98)",
            world.port
        ),
    );
    let event = world.recorded.recv().await.unwrap();
    assert!(event.is_same(&expected), "{event:?}");
    drop(taken);
    assert_eq!(world.ask("GET /").await.0, OK);
}

#[test]
fn each_family_of_a_service_has_its_own_count() {
    let check = |v6| HealthCheck {
        port: NonZeroU16::MIN,
        v4: Some(1),
        v6,
    };
    let addresses = ["0.0.0.0", "2001:db8::1", "2001:db8::2"];
    let addresses = addresses.map(|ip| ip.parse().unwrap()).into();
    let found = |v6| -> Vec<(String, usize)> {
        let sockets = sockets(&check(v6), &addresses).into_iter();
        let sockets = sockets.map(|(socket, count)| (socket.to_string(), count));
        sockets.collect()
    };
    assert_eq!(found(None), [("0.0.0.0:1".to_owned(), 1)]);
    assert_eq!(
        found(Some(0)),
        [
            ("0.0.0.0:1".to_owned(), 1),
            ("[2001:db8::1]:1".to_owned(), 0),
            ("[2001:db8::2]:1".to_owned(), 0),
        ]
    );
}
