//! Tests what every other kernel test relies on: the guest's kernel and programs, and separate namespaces for each test.

#![expect(
    clippy::panic,
    reason = "a test says what it expects by failing loudly"
)]

use std::process::Command;

/// Runs a shell line and returns its standard output. Panics with its standard error when it fails.
fn shell(line: &str) -> String {
    match Command::new("sh").args(["-ec", line]).output() {
        Ok(done) if done.status.success() => String::from_utf8_lossy(&done.stdout).into_owned(),
        other => panic!("`{line}`: {other:?}"),
    }
}

#[test]
fn a_test_finds_an_empty_ipvs_table_and_leaves_none_behind_first() {
    assert_eq!(shell("ipvsadm -S -n"), "");
    shell("ipvsadm -A -t 192.0.2.1:80 -s wrr");
}

#[test]
fn a_test_finds_an_empty_ipvs_table_and_leaves_none_behind_second() {
    assert_eq!(shell("ipvsadm -S -n"), "");
    shell("ipvsadm -A -t 192.0.2.1:80 -s wrr");
}

#[test]
fn lo_is_up() {
    assert_eq!(shell("cat /sys/class/net/lo/operstate").trim(), "unknown");
    assert!(shell("ip -br link show lo").contains("UP"));
}

#[test]
fn named_network_namespaces_of_tests_do_not_meet_first() {
    shell("ip netns add pod && ip -n pod link set lo up");
    assert_eq!(shell("ip netns list").lines().count(), 1);
}

#[test]
fn named_network_namespaces_of_tests_do_not_meet_second() {
    shell("ip netns add pod && ip -n pod link set lo up");
    assert_eq!(shell("ip netns list").lines().count(), 1);
}

#[test]
fn the_kernel_loads_schedulers_and_links_on_its_own() {
    shell("ipvsadm -A -t 192.0.2.1:80 -s mh");
    shell("ip link add kube-ipvs0 type dummy");
    shell("ip link add v0 type veth peer name v1");
    shell("ip link add br0 type bridge");
    shell("ip link add mon0 type nlmon");
}

#[test]
fn sctp_servers_and_tunnels_are_there() {
    shell("ipvsadm -A --sctp-service 192.0.2.1:80 -s rr");
    shell("ipvsadm -A -t [2001:db8::1]:80 -s wlc");
    shell("ipvsadm -a -t [2001:db8::1]:80 -r [2001:db8::2]:80 -m");
}

#[test]
fn nft_builds_a_table_with_every_kind_of_rule_that_the_guard_needs() {
    shell(
        "nft -f - <<'END'
table inet probe {
  set hairpin { type ipv4_addr . ipv4_addr; }
  chain input {
    type filter hook input priority 150; policy accept;
    fib daddr type local meta l4proto tcp reject with tcp reset
    ct original ip daddr 192.0.2.1 reject with icmpx port-unreachable
  }
  chain post { type nat hook postrouting priority srcnat; ip saddr . ip daddr @hairpin masquerade; }
}
table arp probe { chain input { type filter hook input priority 0; arp daddr ip 192.0.2.1 drop; }; }
END",
    );
    assert!(shell("nft list ruleset").contains("tcp reset"));
}

#[test]
fn the_clock_is_set_and_names_of_protocols_are_known() {
    let year: u32 = shell("date -u +%Y").trim().parse().unwrap();
    assert!(year >= 2025, "{year}");
    assert!(shell("cat /etc/protocols").contains("sctp"));
}

#[test]
fn every_program_that_the_shell_promises_starts() {
    for line in [
        "curl --version",
        "conntrack --version",
        "strace -V",
        "tcpdump --version",
        "ss -V",
        "nft --version",
        "ip -V",
        "iptables --version | grep nf_tables && iptables -S FORWARD && ip6tables-save",
        "iptables-legacy --version | grep legacy && iptables-legacy -S FORWARD && ip6tables-legacy-save",
        "ipvsadm --version",
        "ipvsadm -A -t 192.0.2.1:80 -s wrr && ipvsadm-save -n",
        "ipvsadm-save -n | ipvsadm-restore && ipvsadm-save -n",
    ] {
        assert!(!shell(line).is_empty(), "{line}");
    }
}

#[test]
fn pods_and_clients_count_every_connection_and_datagram() {
    // The smallest network of a data-plane test: two pods behind one address.
    shell(
        "ip netns add pod && ip link add v0 type veth peer name eth0 netns pod
ip addr add 192.0.2.1/24 dev v0 && ip link set v0 up
ip -n pod link set eth0 up
for n in 2 3; do
  ip -n pod addr add 192.0.2.$n/24 dev eth0
  for kind in '' --udp; do
    ip netns exec pod guest serve --listen 192.0.2.$n:80 --name pod-$n $kind </dev/null >/dev/null 2>&1 &
  done
done
for kind in -t -u; do
  ipvsadm -A $kind 198.51.100.1:80 -s wrr
  ipvsadm -a $kind 198.51.100.1:80 -r 192.0.2.2:80 -m -w 4
  ipvsadm -a $kind 198.51.100.1:80 -r 192.0.2.3:80 -m -w 1
done
ip route add local 198.51.100.1 dev lo src 192.0.2.1
for n in 2 3; do
  for kind in '' --udp; do
    until guest load --target 192.0.2.$n:80 --connections 1 --patience 500 $kind; do sleep 0.05; done
  done
done",
    );
    for kind in ["", "--udp"] {
        let load = format!("guest load --target 198.51.100.1:80 --connections 100 {kind}");
        let counted = shell(&load);
        let kernel = shell("ipvsadm -L -n --stats; ipvsadm -L -n -c");
        let answers = |pod: &str| {
            let mut counts = counted.lines().filter_map(|line| line.strip_suffix(pod));
            let count = counts.next().and_then(|count| count.trim().parse().ok());
            count.unwrap_or(0_u32)
        };
        let [first, second] = [" pod-2", " pod-3"].map(answers);
        // Once it was 79 and 21, on Debian's newest kernel; the reason is unknown.
        assert!((78..=82).contains(&first), "{counted}{kernel}");
        assert_eq!(first + second, 100, "{counted}{kernel}");
        assert!(counted.contains("100 requests, 0 failed"), "{counted}");
    }
}

#[test]
fn a_held_connection_stays_open_and_a_refused_one_is_a_failure() {
    let held = shell(
        "guest serve --listen 127.0.0.1:80 --name held --hold </dev/null >/dev/null 2>&1 &
ask() { guest load --target 127.0.0.1:80 --connections 1 --patience 300; }
while ask | grep -q refused; do sleep 0.05; done
ask || true",
    );
    assert!(held.contains("1 requests, 1 failed"), "{held}");
    assert!(!held.contains("refused"), "{held}");
    let refused = shell("guest load --target 127.0.0.1:81 --connections 2 || true");
    assert!(refused.contains("2 requests, 2 failed"), "{refused}");
}
