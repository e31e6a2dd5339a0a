//! The connection to the agent on the node, here a small stand-in.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{PATIENCE, Program, cluster};

const CONNECTED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A folder for the agent's socket.
struct SocketFolder(TempDir);

impl SocketFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("agent.sock")
    }

    fn listen(&self) -> UnixListener {
        UnixListener::bind(self.path()).unwrap()
    }

    /// A DNS server on a cluster in a folder, with these options too.
    fn program(&self, options: &[&str]) -> Program {
        let socket = self.path();
        let socket = ["--agent-socket", socket.to_str().unwrap()];
        Program::in_folder(cluster(), &[&socket, options].concat())
    }
}

/// Accepts a connection, and returns it with the first line of the request.
fn accept(listener: &UnixListener) -> (UnixStream, String) {
    listener.set_nonblocking(true).unwrap();
    let began = Instant::now();
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) => assert!(began.elapsed() < PATIENCE, "no connection: {error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(lines.any(|line| line.is_empty()), "the end of the head");
    (stream, first)
}

fn connected(listener: &UnixListener) -> (UnixStream, String) {
    let (mut stream, request) = accept(listener);
    stream.write_all(CONNECTED.as_bytes()).unwrap();
    (stream, request)
}

fn is_ended(mut stream: UnixStream) -> bool {
    stream.read(&mut [0]).unwrap() == 0
}

#[test]
fn the_server_names_its_endpoints_and_the_connection_ends_with_it() {
    let folder = SocketFolder::new();
    let agent = folder.listen();
    for signal in [Signal::KILL, Signal::TERM] {
        let program = folder.program(&["--endpoint", "10.244.1.10,fd00::10"]);
        let (stream, request) = connected(&agent);
        let port = program.address.port();
        assert_eq!(
            request,
            format!(
                "POST /v1/endpoint-connection?endpoints=10.244.1.10:{port},[fd00::10]:{port} HTTP/1.1"
            )
        );
        program.line_with("is connected");
        program.end(signal);
        assert!(is_ended(stream));
    }
}

#[test]
fn the_server_connects_again_after_a_restart_of_the_agent() {
    let folder = SocketFolder::new();
    let program = folder.program(&[]);
    let failure = program.line_with("no connection to the agent");
    assert!(failure.contains("agent.sock"), "{failure}");

    let agent = folder.listen();
    let (stream, request) = connected(&agent);
    let endpoint = format!("endpoints={} ", program.address);
    assert!(request.contains(&endpoint), "{request}");
    program.line_with("is connected");
    drop(stream);
    program.line_with("the agent ended the connection");
    let (mut stream, _) = accept(&agent);
    let refusal =
        "HTTP/1.1 404 Not Found\r\ncontent-length: 25\r\n\r\n{\"error\": \"no such page\"}";
    stream.write_all(refusal.as_bytes()).unwrap();
    program.line_with("no such page");
    let (_stream, _) = connected(&agent);
    program.line_with("is connected");
}

#[test]
fn a_server_that_cannot_answer_yet_does_not_connect() {
    let folder = SocketFolder::new();
    let agent = folder.listen();
    let config = "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], \
                  contexts: [{name: c, context: {cluster: c}}], current-context: c}";
    let input = tempfile::tempdir().unwrap();
    let path = input.path().join("config");
    std::fs::write(&path, config).unwrap();
    let socket = folder.path();
    let options = [
        "--kubeconfig",
        path.to_str().unwrap(),
        "--agent-socket",
        socket.to_str().unwrap(),
    ];
    let _program = Program::start(input, &options);
    agent.set_nonblocking(true).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(agent.accept().is_err());
}
