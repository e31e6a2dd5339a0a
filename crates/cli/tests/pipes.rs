//! `--cluster` with a pipe, a socket or a device: commands that read once accept a pipe, and no
//! command waits forever. Neither does one whose output has no reader.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing loudly"
)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::{CWD, FileType, Mode};

const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/examples/shop");

/// Exit code, output and errors of a line of bash. `$I` is the program, `$SHOP` the example; 124
/// means a timeout.
fn bash(line: &str) -> (Option<i32>, String, String) {
    let output = Command::new("timeout")
        .args(["60", "bash", "-c", line])
        .env("I", env!("CARGO_BIN_EXE_ipvs-topo"))
        .env("SHOP", SHOP)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let [text, errors] = [output.stdout, output.stderr].map(|out| String::from_utf8(out).unwrap());
    (output.status.code(), text, errors)
}

fn make_pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_pipe_is_read_as_the_file_behind_it() {
    let cat = "for file in \"$SHOP\"/*.yaml; do echo ---; cat \"$file\"; done";
    for command in [
        "render --node n1",
        "explain shop/cart --node n1",
        "locate 10.244.1.2",
        "simulate shop/cart",
    ] {
        let (code, expected, errors) = bash(&format!("$I {command} --cluster \"$SHOP\""));
        assert_eq!(code, Some(0), "{errors}");
        let (code, piped, errors) = bash(&format!("$I {command} --cluster <({cat})"));
        assert_eq!(code, Some(0), "{errors}");
        assert!(!piped.is_empty());
        // Only the file's name may differ.
        assert_eq!(piped.lines().count(), expected.lines().count(), "{piped}");
    }
}

#[test]
fn a_pipe_with_a_name_is_refused_as_it_may_have_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    let named = pipe.to_str().unwrap();
    for command in ["render --node n1", "simulate", "agent --node n1"] {
        let (code, _, errors) = bash(&format!("$I {command} --cluster {named}"));
        assert_eq!(code, Some(2), "{command}: {errors}");
        let expected =
            format!("{named}: this is a pipe (FIFO) and is not read; name an existing file");
        assert!(errors.contains(&expected), "{errors}");
    }
}

#[test]
fn commands_that_read_the_cluster_twice_refuse_a_pipe() {
    let set = "simulate shop/cart --set 'shop/cart:keys=zone,*'";
    let cat = "for file in \"$SHOP\"/*.yaml; do echo ---; cat \"$file\"; done";
    for line in [
        format!("$I {set} --cluster <({cat})"),
        format!("{{ {cat}; }} | $I {set} --cluster -"),
        format!("{{ {cat}; }} | $I {set} --cluster /dev/stdin"),
    ] {
        let (code, _, errors) = bash(&line);
        assert_eq!(code, Some(2), "{errors}");
        assert!(
            errors.contains("--set reads the annotations a second time"),
            "{errors}"
        );
    }
}

#[test]
fn the_agent_refuses_a_pipe() {
    let (code, _, errors) = bash("$I agent --node n1 --cluster <(cat \"$SHOP\"/*.yaml)");
    assert_eq!(code, Some(2), "{errors}");
    assert!(
        errors.contains("this is a pipe, which can be read only once; name a file"),
        "{errors}"
    );
}

#[test]
fn a_device_or_a_socket_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for (path, kind) in [
        ("/dev/zero", "a device"),
        (socket.to_str().unwrap(), "a socket"),
    ] {
        for command in ["render", "agent"] {
            let (code, _, errors) = bash(&format!("$I {command} --node n1 --cluster {path}"));
            assert_eq!(code, Some(2), "{errors}");
            let expected = format!("{path}: this is {kind} and is not read");
            assert!(errors.contains(&expected), "{errors}");
        }
    }
}

#[test]
fn a_pipe_inside_a_folder_is_skipped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(SHOP).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    make_pipe(&folder.path().join("pipe.yaml"));
    let shown = folder.path().display();
    let (code, text, errors) = bash(&format!("$I render --node n1 --cluster {shown}"));
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("10.96.0.10"), "{text}");
    assert!(errors.contains("pipe.yaml"), "{errors}");
    assert!(
        errors.contains("this is a pipe (FIFO) and is not read; replace it with a file"),
        "{errors}"
    );
}

/// The answer in the agent's own test; its kernel is not in sync.
const STATUS: &str = include_str!(
    "../../agent/src/api/snapshots/agent__api__tests__status_shows_what_the_kernel_has_beside_what_is_wanted.snap"
);

/// Answers every request at `socket` with the status.
fn serve_status(socket: &Path) {
    let (_, json) = STATUS.split_once("\n---\n").unwrap();
    let length = json.len();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{json}");
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _request = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
}

#[test]
fn a_watch_ends_when_its_output_has_no_reader() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    serve_status(&socket);
    let shown = socket.display();
    let line = format!("$I status --watch --socket {shown} | head -1; exit ${{PIPESTATUS[0]}}");
    let (code, text, errors) = bash(&line);
    assert!(text.starts_with("node    n1, agent "), "{text}{errors}");
    assert_eq!((code, errors.as_str()), (Some(1), ""));
}
