//! Thousands of half-open requests to the controller, with a low soft limit of open files and an
//! API server that never answers.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints the log of the controller"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const REQUESTS: usize = 5_000;
/// Limit of open files: the connections that the port accepts, and those of the controller itself.
const MAX_FILES: usize = 250;

/// A controller and the folder of its kubeconfig, which the controller reads again.
struct Controller {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Controller {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts a controller with a soft limit of 1,024 files and waits until it listens; returns its
/// address, too.
fn start(server: &TcpListener) -> (Controller, String) {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("config");
    let config = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{}}}}], \
         clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]}}",
        server.local_addr().unwrap()
    );
    fs::write(&kubeconfig, config).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -S -n 1024; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_ipvs-topo-controller"))
        .args(["--bind-address", "127.0.0.1:0", "--kubeconfig"])
        .arg(&kubeconfig)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let controller = Controller {
        child,
        _folder: folder,
    };
    let address = log.find_map(|line| {
        let (_, address) = line
            .unwrap()
            .split_once("server listens address=")
            .map(|(before, address)| (before.to_owned(), address.to_owned()))?;
        Some(address)
    });
    std::thread::spawn(move || {
        log.map_while(Result::ok)
            .for_each(|line| eprintln!("{line}"));
    });
    (controller, address.unwrap())
}

#[test]
fn healthz_answers_with_5000_half_open_requests_and_few_files_are_open() {
    telemetry::raise_file_limit();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (controller, address) = start(&server);
    let process = format!("/proc/{}", controller.child.id());
    let limits = fs::read_to_string(format!("{process}/limits")).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let words: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(words.get(3), words.get(4), "soft and hard: {files}");

    let half = |_| {
        let mut stream = TcpStream::connect(&address).unwrap();
        // The controller may have closed the connection.
        drop(stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: "));
        stream
    };
    let _held: Vec<TcpStream> = (0..REQUESTS).map(half).collect();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let open = fs::read_dir(format!("{process}/fd")).unwrap().count();
    assert!(open <= MAX_FILES, "{open} files are open");
}
