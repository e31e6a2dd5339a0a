//! Reads and writes the kernel with other tools, for comparison.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command as Program, Stdio};
use std::time::Duration;

use ipvs_netlink::{Client, Command, Protocol, Service, ServiceId};

pub(crate) use crate::words::{id, real, tcp};

/// Runs a program and returns its output.
pub(crate) fn run(program: &str, arguments: &str) -> String {
    let done = Program::new(program)
        .args(arguments.split_ascii_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{program} {arguments}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

/// Runs a program with this text as input.
pub(crate) fn feed(program: &str, arguments: &str, text: &str) {
    let mut child = Program::new(program)
        .args(arguments.split_ascii_whitespace())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success(), "{program} {arguments}");
}

/// The output of `ipvsadm -S`, line by line, sorted.
pub(crate) fn saved() -> Vec<String> {
    let printed = run("ipvsadm", "-S -n");
    let lines = printed.lines().map(|line| line.trim_end().to_owned());
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// Checks that the table consists of these lines; shows the differences.
pub(crate) fn assert_saved(expected: impl IntoIterator<Item = &'static str>) {
    let expected: BTreeSet<_> = expected.into_iter().map(str::to_owned).collect();
    let saved: BTreeSet<_> = saved().into_iter().collect();
    let missing: Vec<_> = expected.difference(&saved).collect();
    let surplus: Vec<_> = saved.difference(&expected).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing: {missing:#?}\nnot expected: {surplus:#?}"
    );
}

/// Waits until a condition is true. Kernels since 6.2 update counters every two seconds, and a namespace that is being
/// deleted uses its modules for a while.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("a minute later still not: {what}");
}

/// A link with addresses, so that the kernel accepts local and routed real servers.
pub(crate) fn link() {
    run("ip", "link add eth7 type dummy");
    run("ip", "link set eth7 up");
    run("ip", "addr add 192.0.2.1/24 dev eth7");
    run("ip", "addr add 2001:db8::1/64 dev eth7 nodad");
}

/// Carries out commands, which must all succeed.
pub(crate) fn execute(client: &mut Client, commands: &[Command]) {
    let results = client.execute(commands).unwrap();
    assert_eq!(results.len(), commands.len());
    for (command, result) in commands.iter().zip(results) {
        if let Err(error) = result {
            panic!("{command:?}: {error}");
        }
    }
}

/// The n-th of many services.
pub(crate) fn nth(number: u32) -> ServiceId {
    let address = std::net::Ipv4Addr::from_bits(0x0a60_0000 + number);
    ServiceId::address(Protocol::TCP, address.into(), 80)
}

/// Many new services, in a namespace whose estimation is then turned off.
///
/// Linux 6.12 sometimes oopses in `ip_vs_estimation_kthread` when thousands of services are added and removed (seen
/// with 6.12.95, always at 0xfffc000000000020; not with 6.1, which has no such thread, nor with 7.2). Tests that use
/// this do not read counters.
pub(crate) fn many(count: u32) -> Vec<Command> {
    const ESTIMATION: &str = "/proc/sys/net/ipv4/vs/run_estimation";
    if std::path::Path::new(ESTIMATION).exists() {
        std::fs::write(ESTIMATION, "0").unwrap();
    }
    let new = |number| Command::NewService(Service::new(nth(number), "wrr"));
    (0..count).map(new).collect()
}
