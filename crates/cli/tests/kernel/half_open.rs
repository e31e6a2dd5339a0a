//! Thousands of half-open HTTP requests to the agent's ports, with the soft limit of open files of
//! a container runtime.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::agent::Node;
use crate::lab::Lab;
use crate::yaml::NODES;

const HEALTH: &str = "127.0.0.1:10256";
const METRICS: &str = "127.0.0.1:10249";
const REQUESTS: usize = 5_000;
const HARD: u64 = 20_000;
/// The agent's limit of open files: two ports with all their connections, and its own files.
const FEW: usize = 400;

fn limit_files(soft: u64) {
    let limit = Rlimit {
        current: Some(soft),
        maximum: Some(HARD),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Opens connections with half a request each.
fn half_open(address: &str) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        // The agent may have closed the connection already.
        drop(stream.write_all(b"GET /livez HTTP/1.1\r\nHost: "));
        stream
    };
    (0..REQUESTS).map(open).collect()
}

/// The first line of the response.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: n1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn livez_answers_with_5000_half_open_requests_on_each_port_and_few_files_are_open() {
    let _lab = Lab::new();
    let addresses = [
        "--healthz-bind-address",
        HEALTH,
        "--metrics-bind-address",
        METRICS,
    ];
    let mut node = Node::new().with(&addresses);
    node.write("nodes.yaml", NODES);
    limit_files(1_024);
    node.start();
    limit_files(HARD);
    let process = format!("/proc/{}", node.id());
    let limits = fs::read_to_string(format!("{process}/limits")).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let soft = files.split_whitespace().nth(3).unwrap();
    assert_eq!(soft, HARD.to_string(), "{files}");

    let _held = [HEALTH, METRICS].map(half_open);
    assert_eq!(get(HEALTH, "/livez"), "HTTP/1.1 200 OK");
    assert_eq!(get(METRICS, "/metrics"), "HTTP/1.1 200 OK");
    let open = fs::read_dir(format!("{process}/fd")).unwrap().count();
    assert!(open <= FEW, "{open} files are open");
}
