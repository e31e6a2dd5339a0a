//! Real sockets on loopback addresses.

use std::io::ErrorKind;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use topology_core::model::ObjectName;

use super::*;

/// A Service with one server, and its loopback port.
struct World {
    server: TcpListener,
    port: SocketAddr,
    ports: LoopbackPorts,
    task: JoinHandle<()>,
}

impl World {
    async fn new() -> Self {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let (server, unused) = (bind().await.unwrap(), bind().await.unwrap());
        let port = unused.local_addr().unwrap();
        drop(unused);
        let ports = LoopbackPorts::default();
        let world = Self {
            task: tokio::spawn(serve(ports.clone())),
            server,
            port,
            ports,
        };
        world.send_to(world.server.local_addr().unwrap());
        world
    }

    fn send_to(&self, target: SocketAddr) {
        let name = ObjectName::new("t", "web");
        self.ports.replace(&name, [(self.port, target)].into());
    }

    /// Connects as soon as the port is open.
    async fn connect(&self) -> TcpStream {
        loop {
            match TcpStream::connect(self.port).await {
                Ok(stream) => return stream,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// A client and the server's end of its connection.
    async fn pair(&self) -> (TcpStream, TcpStream) {
        let client = self.connect().await;
        let (server, _) = self.server.accept().await.unwrap();
        (client, server)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn received(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

/// KP-VS-15
#[tokio::test]
async fn data_passes_both_ways_and_after_one_end_has_closed() {
    let world = World::new().await;
    let (mut client, mut server) = world.pair().await;
    client.write_all(b"question").await.unwrap();
    assert_eq!(received(&mut server, 8).await, b"question");
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0, "the end");
    server.write_all(b"answer").await.unwrap();
    assert_eq!(received(&mut client, 6).await, b"answer");
    drop(server);
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0, "the end");
}

#[tokio::test]
async fn an_error_of_the_server_is_an_error_of_the_client() {
    let world = World::new().await;
    let (mut client, server) = world.pair().await;
    reset(&server);
    drop(server);
    let error = client.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_service_without_a_server_resets_the_connection() {
    let world = World::new().await;
    drop(world.pair().await);
    let unused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let gone = unused.local_addr().unwrap();
    drop(unused);
    world.send_to(gone);
    let mut client = world.connect().await;
    let error = client.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn d13_beyond_its_limit_a_port_lets_clients_wait_until_a_connection_ends() {
    telemetry::raise_file_limit();
    let world = World::new().await;
    let mut held = Vec::new();
    for _ in 0..MAX_OF_PORT {
        held.push(world.pair().await);
    }
    let mut waiting = world.connect().await;
    waiting.write_all(b"?").await.unwrap();
    let accepted = timeout(Duration::from_millis(200), world.server.accept()).await;
    assert!(accepted.is_err(), "one connection too many");
    held.pop();
    let (mut server, _) = world.server.accept().await.unwrap();
    assert_eq!(received(&mut server, 1).await, b"?");
}
