//! Invalid input and kernel failures give one clear message each, and everything else is served.

use crate::agent::{Node, kernel, wait_kernel};
use crate::lab::{Lab, NODE_V4, sh, succeeds, wait_until};
use crate::yaml::{NODES, Service, slice, web};

const CIDR: &[&str] = &["--service-cidr", "10.96.0.0/12"];

const PORTS: &[(&str, u16, u16)] = &[("TCP", 80, 8080)];

#[test]
fn t03_an_address_of_a_node_is_never_programmed_and_the_node_stays_reachable() {
    let mut lab = Lab::new();
    let client = lab.pod();
    let mut node = Node::new().with(CIDR);
    sh("ip addr add 10.96.0.77/32 dev eth0");
    node.write("nodes.yaml", NODES);
    // Addresses of another node, of this node, and a local one that its Node object does not have.
    node.write("other.yaml", &web("other", &["192.168.10.12"]).yaml());
    node.write("mine.yaml", &web("mine", &[NODE_V4]).yaml());
    node.write("link.yaml", &web("link", &["10.96.0.77"]).yaml());
    node.write("good.yaml", &web("good", &["10.96.0.10"]).yaml());
    // Another kubelet claims a Service's address.
    let thief = "apiVersion: v1\nkind: Node\nmetadata: {name: a1}\n\
                 status: {addresses: [{type: InternalIP, address: 10.96.0.10}]}\n";
    node.write("thief.yaml", thief);
    node.start();
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr"]);
    for (service, address) in [
        ("t/other", "192.168.10.12"),
        ("t/mine", NODE_V4),
        ("t/link", "10.96.0.77"),
    ] {
        let line = node.only_line(service);
        for words in ["WARN", address, "; give the Service another"] {
            assert!(line.contains(words), "{line}");
        }
    }
    let routes = sh("ip route show table local proto 173");
    assert_eq!(
        routes.trim(),
        "local 10.96.0.0/12 dev lo scope host src 192.168.10.11"
    );
    for own in [NODE_V4, "10.96.0.77"] {
        assert!(
            client.succeeds(&format!("busybox ping -c 1 -W 2 {own}")),
            "{own}"
        );
    }
}

#[test]
fn kp_sy_18_of_two_services_with_one_address_the_older_one_has_it() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR);
    node.write("nodes.yaml", NODES);
    let older = "metadata: {creationTimestamp: '2024-01-01T00:00:00Z', ";
    let newer = "metadata: {creationTimestamp: '2025-01-01T00:00:00Z', ";
    node.write(
        "a.yaml",
        &web("aaa", &["10.96.0.10"])
            .yaml()
            .replace("metadata: {", newer),
    );
    node.write(
        "b.yaml",
        &web("bbb", &["10.96.0.10"])
            .yaml()
            .replace("metadata: {", older),
    );
    node.write("as.yaml", &slice("aaa", "aaa-4", PORTS, &["10.244.1.1 n1"]));
    node.write("bs.yaml", &slice("bbb", "bbb-4", PORTS, &["10.244.1.2 n1"]));
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.2:8080 -m -w 1",
    ]);
    let line = node.only_line("belongs to the older Service t/bbb");
    for words in [
        "WARN",
        "Service t/aaa",
        "10.96.0.10:80",
        "; give one of them another address or port",
    ] {
        assert!(line.contains(words), "{line}");
    }
    node.remove("b.yaml");
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
    ]);
}

#[test]
fn pain_18_invalid_endpoints_are_left_out_and_valid_ones_serve() {
    let _lab = Lab::new();
    let mut node = Node::new().with(&["--service-cidr", "10.96.0.0/12,fd00:10:96::/112"]);
    node.write("nodes.yaml", NODES);
    node.write(
        "web.yaml",
        &web("web", &["10.96.0.10", "fd00:10:96::a"]).yaml(),
    );
    let endpoints = [
        "127.0.0.1 n1",
        "169.254.3.3 n1",
        "fd00::1 n1",
        "10.244.1.1 n1",
    ];
    node.write("slice.yaml", &slice("web", "web-4", PORTS, &endpoints));
    let endpoints = [
        "::1 n1",
        "fe80::3 n1",
        "10.244.1.1 n1",
        "fd00:10:244:1::1 n1",
    ];
    node.write("six.yaml", &slice("web", "web-6", PORTS, &endpoints));
    node.start();
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t [fd00:10:96::a]:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
        "-a -t [fd00:10:96::a]:80 -r [fd00:10:244:1::1]:8080 -m -w 1",
    ]);
    for (of, address, problem) in [
        ("web-4", "127.0.0.1", "loopback"),
        ("web-4", "169.254.3.3", "link-local"),
        ("web-4", "fd00::1", "addressType"),
        ("web-6", "::1", "loopback"),
        ("web-6", "fe80::3", "link-local"),
        ("web-6", "10.244.1.1", "addressType"),
    ] {
        let line = node.only_line(&format!(": {address} is "));
        for words in ["WARN", of, problem, "; "] {
            assert!(line.contains(words), "{words}: {line}");
        }
    }
}

/// The number of real servers with a weight above zero.
fn serving(kernel: &[String], address: &str) -> usize {
    let of = format!("-a -t {address}:80 ");
    let reals = kernel.iter().filter(|line| line.starts_with(&of));
    reals.filter(|line| !line.ends_with(" -w 0")).count()
}

#[test]
fn a_hundred_slices_of_one_service_are_all_programmed_and_one_of_them_moves() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR);
    node.write("nodes.yaml", NODES);
    node.write("web.yaml", &web("web", &["10.96.0.10"]).yaml());
    let give = |node: &Node, part: u32, service: &str| {
        let endpoints: Vec<_> = (1..=30)
            .map(|host| format!("10.244.{part}.{host} n2"))
            .collect();
        node.write(
            &format!("slice{part}.yaml"),
            &slice(service, &format!("web-{part}"), PORTS, &endpoints),
        );
    };
    for part in 0..100 {
        give(&node, part, "web");
    }
    node.start();
    assert_eq!(kernel().len(), 3_001);
    node.write("other.yaml", &web("other", &["10.96.0.11"]).yaml());
    give(&node, 7, "other");
    wait_until("the slice at its new Service", || {
        let held = kernel();
        let counts = ["10.96.0.10", "10.96.0.11"].map(|address| serving(&held, address));
        counts == [2_970, 30]
    });
}

/// A scheduler that only this test uses.
const SCHEDULER: &str = "ovf";

/// Hides the module of that scheduler.
struct Hidden(String);

impl Hidden {
    fn new() -> Self {
        // A namespace that used the module holds it until the namespace is deleted.
        wait_until("the end of its module", || {
            succeeds(&format!(
                "! grep -q '^ip_vs_{SCHEDULER} ' /proc/modules || rmmod ip_vs_{SCHEDULER}"
            ))
        });
        let find = format!("find /lib/modules -name 'ip_vs_{SCHEDULER}.ko*'");
        let module = sh(&find).trim().to_owned();
        sh(&format!("mv {module} {module}.away"));
        Self(module)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let module = &self.0;
        succeeds(&format!("mv {module}.away {module}"));
    }
}

#[test]
fn alone_a_missing_scheduler_is_replaced_by_wrr_until_it_exists() {
    let hidden = Hidden::new();
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR).with(&["--check-period", "2s"]);
    node.write("nodes.yaml", NODES);
    let annotation =
        format!("topology.ipvs-topo.io/mode: none, topology.ipvs-topo.io/scheduler: {SCHEDULER}");
    let odd = Service {
        annotations: &annotation,
        ..web("odd", &["10.96.0.10"])
    };
    node.write("odd.yaml", &odd.yaml());
    node.write("good.yaml", &web("good", &["10.96.0.11"]).yaml());
    node.start();
    let good = "-A -t 10.96.0.11:80 -s wrr";
    assert_eq!(kernel(), ["-A -t 10.96.0.10:80 -s wrr", good]);
    // The agent retries repeatedly, and logs it once.
    std::thread::sleep(std::time::Duration::from_secs(5));
    let line = node.only_line("this kernel has no scheduler");
    let remedy = format!("modprobe ip_vs_{SCHEDULER}");
    for words in ["WARN", SCHEDULER, &remedy] {
        assert!(line.contains(words), "{line}");
    }
    let status = std::process::Command::new("ipvs-topo")
        .args(["status", "-o", "json", "--socket"])
        .arg(node.socket())
        .output()
        .unwrap();
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.contains("SchedulerMissing"), "{text}");
    assert!(text.contains("this kernel has no scheduler"), "{text}");
    drop(hidden);
    wait_kernel(&[&format!("-A -t 10.96.0.10:80 -s {SCHEDULER}"), good]);
}

#[test]
fn d3_a_record_truncated_by_a_full_disk_is_completed_once_there_is_room() {
    const PORTS: u16 = 300;
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR);
    let state = node.state();
    let state = state.display();
    // Room for the lock, some lines, and a part of a line.
    sh(&format!(
        "mkdir {state} && mount -t tmpfs -o size=8k tmpfs {state}"
    ));
    node.write("nodes.yaml", NODES);
    let ports: Vec<_> = (1..=PORTS).map(|port| ("TCP", port)).collect();
    let many = Service {
        ports: &ports,
        ..web("many", &["10.96.0.10"])
    };
    node.write("many.yaml", &many.yaml());
    node.start();
    node.wait_log("the ownership record cannot be written: No space left on device");
    assert_eq!(kernel(), [""; 0]);
    sh(&format!("mount -o remount,size=256k {state}"));
    wait_until("all of them", || kernel().len() == usize::from(PORTS));

    node.kill();
    node.forget_log();
    node.start();
    node.remove("many.yaml");
    wait_kernel(&[]);
    assert!(!node.log().contains("WARN"), "{}", node.log());
}

#[test]
fn d8_a_failed_step_is_repaired_by_reading_the_key_again() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR).with(&["--check-period", "10m"]);
    node.write("nodes.yaml", NODES);
    node.write("web.yaml", &web("web", &["10.96.0.10"]).yaml());
    node.write("other.yaml", &web("other", &["10.96.0.11"]).yaml());
    node.write(
        "slice.yaml",
        &slice("web", "web-4", PORTS, &["10.244.1.1 n1"]),
    );
    node.start();
    // The agent does not see this; its next step for the key finds no virtual server.
    sh("ipvsadm -D -t 10.96.0.10:80");
    node.write(
        "slice.yaml",
        &slice("web", "web-4", PORTS, &["10.244.1.1 n1", "10.244.1.2 n1"]),
    );
    wait_kernel(&[
        "-A -t 10.96.0.10:80 -s wrr",
        "-A -t 10.96.0.11:80 -s wrr",
        "-a -t 10.96.0.10:80 -r 10.244.1.1:8080 -m -w 1",
        "-a -t 10.96.0.10:80 -r 10.244.1.2:8080 -m -w 1",
    ]);
}

#[test]
fn t13_without_permission_the_agent_names_the_capability_and_exits() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR);
    node.write("nodes.yaml", NODES);
    let folder = node.cluster();
    let folder = folder.parent().unwrap().display();
    // With and without permission for the socket and the record.
    for mode in ["a+rX,go-w", "a+rwX"] {
        sh(&format!("chmod -R {mode} {folder}"));
        node.launch_as(65534);
        let status = node.wait_end();
        let log = node.log();
        assert_eq!(status.code(), Some(1), "{log}");
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains("the agent needs CAP_NET_ADMIN"), "{log}");
        assert!(log.contains("run it as root"), "{log}");
        node.forget_log();
    }
}

#[test]
fn the_agent_needs_net_admin_and_nothing_else() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR);
    node.write("nodes.yaml", NODES);
    node.write("web.yaml", &web("web", &["10.96.0.10"]).yaml());
    node.launch_confined("-net_admin");
    assert_eq!(node.wait_end().code(), Some(1), "{}", node.log());
    assert!(node.log().contains("CAP_NET_ADMIN"), "{}", node.log());
    node.forget_log();

    sh("sysctl -qw net.ipv4.ip_forward=0 net.ipv4.vs.conntrack=0");
    node.launch_confined("-all,+net_admin");
    node.wait_ready();
    wait_kernel(&["-A -t 10.96.0.10:80 -s wrr"]);
    assert!(!node.log().contains("WARN"), "{}", node.log());
    assert!(sh("ip route show table local proto 173").contains("10.96.0.0/12"));
    assert!(sh("nft list tables").contains("ipvs-topo"));
    for setting in ["net.ipv4.ip_forward", "net.ipv4.vs.conntrack"] {
        assert_eq!(sh(&format!("sysctl -n {setting}")).trim(), "1", "{setting}");
    }
}

#[test]
fn t13_alone_without_the_module_the_agent_names_it_and_exits() {
    // The module can be unloaded only while no namespace uses it.
    let reload = Reload;
    wait_until("unloading of all IPVS modules", || {
        succeeds(
            "! grep -q '^ip_vs' /proc/modules ||
             rmmod $(grep -o '^ip_vs_[a-z_]*' /proc/modules) ip_vs",
        )
    });
    std::fs::write("/proc/sys/kernel/modprobe", "/bin/false").unwrap();
    let mut node = Node::new().with(CIDR);
    node.write("nodes.yaml", NODES);
    node.launch_with_path("/nowhere");
    let status = node.wait_end();
    assert_eq!(status.code(), Some(1), "{}", node.log());
    assert!(node.log().contains("modprobe ip_vs"), "{}", node.log());
    drop(reload);
    assert!(succeeds("modprobe ip_vs"));
}

/// Restores the module loader when dropped.
struct Reload;

impl Drop for Reload {
    fn drop(&mut self) {
        drop(std::fs::write(
            "/proc/sys/kernel/modprobe",
            "/sbin/modprobe",
        ));
    }
}

#[test]
fn half_a_file_changes_nothing() {
    let _lab = Lab::new();
    let mut node = Node::new().with(CIDR);
    node.write("nodes.yaml", NODES);
    node.write(
        "web.yaml",
        &(web("web", &["10.96.0.10"]).yaml() + &slice("web", "web-4", PORTS, &["10.244.1.1 n1"])),
    );
    node.start();
    let before = kernel();
    assert_eq!(before.len(), 2);
    node.write(
        "web.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namesp",
    );
    node.wait_log("web.yaml");
    node.write("other.yaml", &web("other", &["10.96.0.11"]).yaml());
    wait_until("the other Service", || kernel().len() == 3);
    assert!(before.iter().all(|line| kernel().contains(line)));
}
