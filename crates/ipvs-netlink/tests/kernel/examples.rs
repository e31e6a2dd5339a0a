//! Runs the examples.

use crate::support::{assert_saved, run};

#[path = "../../examples/list.rs"]
#[expect(dead_code, reason = "a test calls what `main` calls")]
mod list;
#[path = "../../examples/replace.rs"]
#[expect(dead_code, reason = "a test calls what `main` calls")]
mod replace;

fn replace(line: &str) -> bool {
    let words = line.split(' ').map(str::to_owned);
    replace::replace(words).is_ok()
}

#[test]
fn examples_do_what_is_documented_and_change_nothing_else() {
    assert!(replace("10.96.0.10:80 192.0.2.1:8080=80 192.0.2.2:8080=20"));
    assert_saved([
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 80",
        "-a -t 10.96.0.10:80 -r 192.0.2.2:8080 -m -w 20",
    ]);
    run("ipvsadm", "-E -t 10.96.0.10:80 -s wlc -p 30");
    let limited = "-e -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 80 -x 9 -y 5";
    run("ipvsadm", limited);
    assert!(replace("10.96.0.10:80 192.0.2.1:8080=70 192.0.2.3:8080=30"));
    assert_saved([
        "-A -t 10.96.0.10:80 -s wlc -p 30",
        "-a -t 10.96.0.10:80 -r 192.0.2.1:8080 -m -w 70",
        "-a -t 10.96.0.10:80 -r 192.0.2.3:8080 -m -w 30",
    ]);
    let limits = run("ipvsadm", "-Ln --thresholds");
    let line = limits.lines().find(|line| line.contains("192.0.2.1:8080"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert!(words.contains(&"9") && words.contains(&"5"), "{limits}");
    assert!(!replace("10.96.0.10:80 192.0.2.1:8080"));
    list::list().unwrap();
}
