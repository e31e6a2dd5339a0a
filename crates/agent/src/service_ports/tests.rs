//! Real sockets on loopback addresses. A server answers with the name of its Service and the value of its port.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;

struct World {
    ports: ServicePorts<u8>,
    task: JoinHandle<()>,
    new_failures: tokio::sync::mpsc::UnboundedReceiver<OpenFailure>,
}

impl World {
    fn new() -> Self {
        let ports = ServicePorts::default();
        let values: ServicePorts<u8> = ports.clone();
        let server = move |listener: TcpListener, place: Place| {
            let values = values.clone();
            async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let text = format!("{} {}", place.0.name, values.get(&place).unwrap());
                    stream.write_all(text.as_bytes()).await.unwrap();
                }
            }
        };
        let (sender, new_failures) = tokio::sync::mpsc::unbounded_channel();
        let failed = move |failure: OpenFailure| sender.send(failure).unwrap();
        let task = tokio::spawn(ports.clone().serve("test port", server, failed));
        Self {
            ports,
            task,
            new_failures,
        }
    }

    fn set(&self, service: &str, ports: &[(u16, u8)]) {
        let ports = ports.iter();
        let ports = ports.map(|&(port, value)| (at(port), value)).collect();
        self.ports.replace(&ObjectName::new("t", service), ports);
    }

    /// Waits until so many ports cannot be opened.
    async fn failures(&self, count: usize) -> Vec<String> {
        let mut failures = self.ports.failures();
        let failures = failures.wait_for(|failures| failures.len() == count);
        failures.await.unwrap().clone()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A port that no process has.
async fn free_port() -> u16 {
    let listener = TcpListener::bind(at(0)).await.unwrap();
    listener.local_addr().unwrap().port()
}

/// The answer of a port, as soon as it is open.
async fn ask(port: u16) -> String {
    loop {
        let Ok(mut stream) = TcpStream::connect(at(port)).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        return answer;
    }
}

async fn closed(port: u16) {
    while TcpStream::connect(at(port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// KP-HC-14
#[tokio::test]
async fn ports_follow_their_service_and_the_next_connection_gets_the_new_value() {
    let world = World::new();
    let [one, other] = [free_port().await, free_port().await];
    world.set("web", &[(one, 1)]);
    assert_eq!(ask(one).await, "web 1");
    world.set("web", &[(one, 2)]);
    assert_eq!(ask(one).await, "web 2");
    world.set("web", &[(one, 2), (other, 3)]);
    assert_eq!([ask(one).await, ask(other).await], ["web 2", "web 3"]);
    world.set("web", &[(other, 3)]);
    closed(one).await;
    assert_eq!(ask(other).await, "web 3");
    world.set("web", &[]);
    closed(other).await;
}

/// KP-HC-13
#[tokio::test]
async fn a_port_in_use_is_reported_and_opened_once_it_is_free() {
    let mut world = World::new();
    let taken = TcpListener::bind(at(0)).await.unwrap();
    let address = taken.local_addr().unwrap();
    world.set("web", &[(address.port(), 1)]);
    let failures = world.failures(1).await;
    let expected =
        format!("Service t/web: test port {address} cannot be opened: Address already in use");
    assert!(failures[0].starts_with(&expected), "{failures:?}");
    let failure = world.new_failures.recv().await.unwrap();
    assert_eq!(failure.place, (ObjectName::new("t", "web"), address));
    drop(taken);
    world.failures(0).await;
    assert_eq!(ask(address.port()).await, "web 1");
    assert!(world.new_failures.try_recv().is_err(), "once");
}

#[tokio::test(start_paused = true)]
async fn tries_in_vain_report_a_port_once_and_a_service_with_several_ports_too() {
    let mut world = World::new();
    let taken = [
        TcpListener::bind(at(0)).await.unwrap(),
        TcpListener::bind(at(0)).await.unwrap(),
    ];
    let ports = taken.each_ref().map(|one| one.local_addr().unwrap().port());
    world.set("web", &ports.map(|port| (port, 1)));
    world.failures(2).await;
    tokio::time::sleep(10 * RETRY).await;
    assert!(world.new_failures.recv().await.is_some());
    assert!(world.new_failures.try_recv().is_err(), "once");
}

#[tokio::test]
async fn a_port_that_moves_to_another_service_is_opened_without_a_pause() {
    let (world, port) = (World::new(), free_port().await);
    world.set("old", &[(port, 1)]);
    assert_eq!(ask(port).await, "old 1");
    world.set("new", &[(port, 2)]);
    world.failures(1).await;
    let moved = Instant::now();
    world.set("old", &[]);
    world.failures(0).await;
    assert!(moved.elapsed() < RETRY, "{:?}", moved.elapsed());
    assert_eq!(ask(port).await, "new 2");
}

#[tokio::test]
async fn d13_a_service_that_cannot_have_its_port_does_not_delay_the_others() {
    let world = World::new();
    let mut taken = Vec::new();
    for number in 0..25 {
        let listener = TcpListener::bind(at(0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        world.set(&format!("web-{number}"), &[(port, 1)]);
        taken.push(listener);
    }
    let port = free_port().await;
    world.set("zz", &[(port, 1)]);
    assert_eq!(ask(port).await, "zz 1");
    let failures = world.failures(21).await;
    assert_eq!(failures.last().unwrap(), "5 more like these: test port");
}

#[tokio::test]
async fn a_server_that_panics_ends_the_task() {
    let (ports, port) = (ServicePorts::default(), free_port().await);
    let server = |_listener, _place: Place| async { panic!("a bug in a server") };
    let task = tokio::spawn(ports.clone().serve("test port", server, drop));
    ports.replace(&ObjectName::new("t", "web"), [(at(port), ())].into());
    assert!(task.await.unwrap_err().is_panic());
}
