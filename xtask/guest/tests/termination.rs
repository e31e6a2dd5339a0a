//! Tests that a server and a client finish their current requests after SIGTERM.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

fn guest(arguments: &[&str]) -> Child {
    let mut guest = Command::new(env!("CARGO_BIN_EXE_guest"));
    guest.args(arguments).stdin(Stdio::piped());
    guest.stdout(Stdio::piped()).spawn().unwrap()
}

fn terminate(child: &Child) {
    let killed = Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.unwrap().success());
}

#[test]
fn a_server_and_a_client_fail_no_request_after_sigterm() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let server = guest(&["serve", "--listen", &address, "--name", "one"]);
    while std::net::TcpStream::connect(&address).is_err() {
        std::thread::yield_now();
    }
    let load = ["load", "--target", &address, "--rate", "100"];
    let mut client = guest(&[&load[..], &["--every", "1", "-o", "json"]].concat());
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let so_far: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(so_far["requests"].as_u64().unwrap() > 0, "{so_far}");
    terminate(&client);
    let last = lines.map(Result::unwrap).last().unwrap();
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["failed"], 0, "{last}");
    assert_eq!(last["requests"], last["answers"]["one"]);
    assert!(client.wait().unwrap().success());
    terminate(&server);
    assert!(server.wait_with_output().unwrap().status.success());
}
