//! Starts both servers, and asks them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hickory_proto::op::Message;
use hickory_proto::rr::RecordType;

use crate::client::{over_tcp, over_udp, query, udp_from, whole, with_size};
use crate::kubectl::variable;
use crate::program::{PATIENCE, Program};

use super::upstream;

/// The size of UDP messages that most resolvers offer.
pub(crate) const USUAL_SIZE: u16 = 1_232;

/// Questions to a server that wait for their answers.
const WINDOW: usize = 24;

pub(crate) struct Servers {
    coredns: CoreDns,
    ours: Program,
}

/// The answers of both servers.
pub(crate) struct Answers {
    pub(crate) theirs: Message,
    pub(crate) ours: Message,
}

impl Servers {
    /// Starts both for the API server.
    pub(crate) fn start() -> Self {
        let upstream = upstream::start().to_string();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = variable("KUBECONFIG");
        let options = ["--kubeconfig", &kubeconfig, "--upstream", &upstream];
        Self {
            coredns: CoreDns::with_zones(&kubeconfig, &upstream),
            ours: Program::start(folder, &options),
        }
    }

    pub(crate) fn theirs(&self) -> SocketAddr {
        self.coredns.address
    }

    pub(crate) fn ours(&self) -> SocketAddr {
        self.ours.address
    }

    /// Asks both the same questions over UDP.
    pub(crate) fn ask_all(&self, client: Ipv4Addr, questions: &[Message]) -> Vec<Answers> {
        let addresses = [self.theirs(), self.ours()];
        let (theirs, ours) = std::thread::scope(|scope| {
            let theirs = scope.spawn(move || ask_all(client, addresses[0], questions));
            let ours = ask_all(client, addresses[1], questions);
            (theirs.join().unwrap(), ours)
        });
        let pairs = theirs.into_iter().zip(ours);
        pairs
            .map(|(theirs, ours)| Answers { theirs, ours })
            .collect()
    }

    pub(crate) fn over_udp(&self, client: Ipv4Addr, question: &Message) -> Answers {
        Answers {
            theirs: over_udp(client, self.theirs(), question),
            ours: over_udp(client, self.ours(), question),
        }
    }

    pub(crate) fn over_tcp(&self, client: Ipv4Addr, question: &Message) -> Answers {
        Answers {
            theirs: over_tcp(client, self.theirs(), question),
            ours: over_tcp(client, self.ours(), question),
        }
    }
}

pub(crate) fn usual(name: &str, record_type: RecordType) -> Message {
    with_size(query(name, record_type), USUAL_SIZE)
}

/// Sends many questions at a time; repeats those that get lost.
fn ask_all(client: Ipv4Addr, server: SocketAddr, questions: &[Message]) -> Vec<Message> {
    let socket = udp_from(client, server);
    socket
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    questions
        .chunks(WINDOW)
        .flat_map(|chunk| ask_some(&socket, chunk))
        .collect()
}

fn ask_some(socket: &UdpSocket, questions: &[Message]) -> Vec<Message> {
    let deadline = Instant::now() + PATIENCE;
    let with_ids = questions.iter().zip(0..).map(|(question, id)| {
        let mut question = question.clone();
        question.metadata.id = id;
        question
    });
    let questions: Vec<Message> = with_ids.collect();
    let mut answers: Vec<Option<Message>> = questions.iter().map(|_| None).collect();
    let mut buffer = vec![0; 65_535];
    while answers.iter().any(Option::is_none) {
        assert!(Instant::now() < deadline, "no answer: {questions:?}");
        let waiting = questions.iter().zip(&answers);
        for (question, _) in waiting.filter(|(_, answer)| answer.is_none()) {
            socket.send(&question.to_vec().unwrap()).unwrap();
        }
        while answers.iter().any(Option::is_none) {
            let Ok(length) = socket.recv(&mut buffer) else {
                break;
            };
            let answer = whole(&buffer[..length]);
            let at = usize::from(answer.metadata.id);
            // Otherwise it answers a repeated question of an earlier chunk.
            if questions
                .get(at)
                .is_some_and(|question| question.queries == answer.queries)
            {
                answers[at] = Some(answer);
            }
        }
    }
    answers.into_iter().flatten().collect()
}

pub(crate) struct CoreDns {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl CoreDns {
    /// Starts it as kubeadm configures it, but with the zones of `zonal` and without a cache.
    fn with_zones(kubeconfig: &str, upstream: &str) -> Self {
        let plugins = format!(
            "kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
        zonal
    }}
    forward . {upstream}
    loadbalance"
        );
        Self::start(".", &plugins, &[])
    }

    /// Starts it with these plugins for the names of `zone`, and with these environment variables.
    pub(crate) fn start(zone: &str, plugins: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let port = address.port();
        let configuration =
            format!("{zone}:{port} {{\n    bind 127.0.0.1\n    errors\n    {plugins}\n}}\n");
        let path = folder.path().join("Corefile");
        std::fs::write(&path, configuration).unwrap();
        let child = Command::new(variable("COREDNS_PROGRAM"))
            .arg("-conf")
            .arg(&path)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let coredns = Self { child, address };
        let begin = Instant::now();
        // It reads the file before it listens.
        while std::net::TcpStream::connect(address).is_err() {
            assert!(begin.elapsed() < PATIENCE, "CoreDNS does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        coredns
    }
}

impl Drop for CoreDns {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An address whose port is free for UDP and TCP.
fn free_address() -> SocketAddr {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
