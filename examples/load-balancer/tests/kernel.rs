//! The load balancer on real kernels: `cargo xtask vm test --package load-balancer`.
//!
//! Every test is a process in a network namespace of its own, with an empty IPVS table and `lo` up.
#![allow(
    clippy::unwrap_used,
    reason = "tests say what they expect by failing loudly"
)]

use std::path::PathBuf;
use std::process::Command;

use load_balancer::{Arguments, run};

const SAMPLE: &str = include_str!("../balancer.toml");

/// What `ipvsadm` would save, sorted.
fn saved() -> Vec<String> {
    let done = Command::new("ipvsadm").args(["-S", "-n"]).output().unwrap();
    assert!(done.status.success());
    let text = String::from_utf8(done.stdout).unwrap();
    let mut lines: Vec<_> = text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.sort();
    lines
}

fn ipvsadm(arguments: &str) {
    let words = arguments.split(' ');
    assert!(
        Command::new("ipvsadm")
            .args(words)
            .status()
            .unwrap()
            .success()
    );
}

/// A file of this test's own with `text`.
fn file(name: &str, text: &str) -> PathBuf {
    let path =
        std::env::temp_dir().join(format!("load-balancer-{name}-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

/// Runs the program and returns what it printed, and its error.
fn balance(text: &str, clear: bool) -> (String, Option<String>) {
    let file = file("kernel", text);
    let mut out = Vec::new();
    let result = run(&Arguments { file, clear }, &mut out);
    let error = result.err().map(|error| error.to_string());
    (String::from_utf8(out).unwrap(), error)
}

#[test]
fn the_kernel_holds_what_the_file_says_and_a_second_run_changes_nothing() {
    let (printed, error) = balance(SAMPLE, false);
    assert_eq!(error, None);
    assert!(
        printed.starts_with("5 of 5 changes applied\nVIRTUAL SERVER"),
        "{printed}"
    );
    assert_eq!(
        saved(),
        [
            "-A -t 192.0.2.10:80 -s wrr",
            "-A -u [2001:db8::10]:53 -s rr -p 300",
            "-a -t 192.0.2.10:80 -r 10.0.0.1:8080 -m -w 80",
            "-a -t 192.0.2.10:80 -r 10.0.0.2:8080 -m -w 20",
            "-a -u [2001:db8::10]:53 -r [2001:db8:1::1]:5353 -m -w 1",
        ]
    );
    let (printed, error) = balance(SAMPLE, false);
    assert_eq!(error, None);
    assert!(printed.starts_with("0 of 0 changes applied\n"), "{printed}");
    let row = printed
        .lines()
        .find(|line| line.contains("10.0.0.2:8080"))
        .unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells, ["10.0.0.2:8080", "masquerade", "20", "0", "0"]);
}

#[test]
fn a_change_touches_only_what_differs_and_nothing_that_the_file_does_not_name() {
    balance(SAMPLE, false);
    ipvsadm("-A -t 198.51.100.1:443 -s rr");
    ipvsadm("-e -t 192.0.2.10:80 -r 10.0.0.1:8080 -m -w 80 -x 9 -y 5");
    let changed = SAMPLE.replace("weight = 20", "weight = 30");
    let (printed, error) = balance(&changed, false);
    assert_eq!(error, None);
    assert!(printed.starts_with("1 of 1 changes applied\n"), "{printed}");
    let lines = saved();
    assert!(
        lines.contains(&"-a -t 192.0.2.10:80 -r 10.0.0.2:8080 -m -w 30".to_owned()),
        "{lines:?}"
    );
    let (printed, error) = balance(&changed, true);
    assert_eq!(error, None);
    assert!(printed.starts_with("2 of 2 changes applied\n"), "{printed}");
    assert_eq!(saved(), ["-A -t 198.51.100.1:443 -s rr"]);
}

#[test]
fn what_the_kernel_refuses_is_named_and_the_rest_is_programmed() {
    let text = SAMPLE.replace("\"rr\"", "\"nosuch\"");
    let (printed, error) = balance(&text, false);
    let error = error.unwrap();
    assert!(
        error.contains("[2001:db8::10]:53") && error.contains("unknown scheduler"),
        "{error}"
    );
    assert!(printed.starts_with("3 of 5 changes applied\n"), "{printed}");
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing() {
    let (printed, error) = balance(&SAMPLE.replace("weight = 20", "weight = -20"), false);
    let error = error.unwrap();
    let key = ".toml: virtual-server[1].real-server[2].weight: -20 is out of range; give 0 to";
    assert!(error.contains(key), "{error}");
    assert!(printed.is_empty() && saved().is_empty(), "{printed}");
}
