//! A node with pods as network namespaces. The current namespace is the node, and each pod has its
//! own.
//!
//! Each pod has a veth pair with one route, as with Calico or the `ptp` plugin, so every packet
//! between two pods passes the node's IP layer. Dropping the lab deletes it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const NODE_V4: &str = "192.168.10.11";
pub(crate) const NODE_V6: &str = "fd00:10::11";
/// A host on the node's network, outside of the cluster.
pub(crate) const OUTSIDER_V4: &str = "192.168.10.1";
pub(crate) const OUTSIDER_V6: &str = "fd00:10::1";

const GATEWAY_V4: &str = "169.254.1.1";
const GATEWAY_V6: &str = "fe80::1";

/// The longest wait. A guest without KVM is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A network namespace with a link to the node.
#[derive(Debug)]
pub(crate) struct Place {
    netns: String,
    pub(crate) v4: IpAddr,
    pub(crate) v6: IpAddr,
}

#[derive(Debug, Default)]
pub(crate) struct Lab {
    pods: u8,
    namespaces: Vec<String>,
}

/// Runs a command line and returns its output; it must succeed.
pub(crate) fn sh(line: &str) -> String {
    let output = run("sh", &["-c", line]);
    assert!(
        output.status.success(),
        "{line}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs a command line and returns whether it succeeded.
pub(crate) fn succeeds(line: &str) -> bool {
    run("sh", &["-c", line]).status.success()
}

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A connection from the calling thread's namespace.
pub(crate) fn try_connect(target: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&target.parse().unwrap(), Duration::from_secs(8))
}

/// The server's end of a connection.
pub(crate) fn other_end(listener: &TcpListener, of: &TcpStream) -> TcpStream {
    let client = of.local_addr().unwrap();
    loop {
        let (stream, from) = listener.accept().unwrap();
        if from == client {
            return stream;
        }
    }
}

/// Asserts that data passes in both directions.
pub(crate) fn talk(one: &TcpStream, other: &TcpStream) {
    for (mut from, mut to) in [(one, other), (other, one)] {
        to.set_read_timeout(Some(PATIENCE)).unwrap();
        from.write_all(b"word").unwrap();
        to.read_exact(&mut [0; 4])
            .expect("the connection continues");
    }
}

/// Runs lines of `ip`, without that word, in one process, because processes start slowly in a
/// guest.
fn ip(options: &[&str], lines: &str) {
    let output = batch(options, lines);
    let error = text(&output.stderr);
    assert!(output.status.success(), "ip {options:?}: {lines}: {error}");
}

fn batch(options: &[&str], lines: &str) -> Output {
    let mut child = Command::new("ip")
        .args(options)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("ip: {error}"));
    let mut input = child.stdin.take().expect("asked for");
    input.write_all(lines.as_bytes()).expect("ip reads");
    drop(input);
    child.wait_with_output().expect("our own child")
}

/// Waits until `done` returns true; `what` is for the panic message.
///
/// Polling takes at most half of the time. Most checks start a program, and the tested programs
/// need the processor, too.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    loop {
        let look = Instant::now();
        if done() {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "waited {PATIENCE:?} for: {what}"
        );
        std::thread::sleep(look.elapsed().max(Duration::from_millis(20)));
    }
}

impl Lab {
    /// A node with an address of each family on `eth0`, and a host at the other end of the link.
    pub(crate) fn new() -> Self {
        let mut lab = Self::default();
        let outside = lab.namespace("outside");
        sh(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
            net.ipv4.conf.all.rp_filter=0",
        );
        ip(
            &[],
            &format!(
                "link set lo up
                link add eth0 type veth peer name eth0 netns {outside}
                addr add {NODE_V4}/24 dev eth0
                addr add {NODE_V6}/64 dev eth0 nodad
                link set eth0 up
                route add default via {OUTSIDER_V4}
                route add default via {OUTSIDER_V6}"
            ),
        );
        ip(
            &["-n", &outside],
            &format!(
                "link set lo up
                addr add {OUTSIDER_V4}/24 dev eth0
                addr add {OUTSIDER_V6}/64 dev eth0 nodad
                link set eth0 up"
            ),
        );
        lab
    }

    /// The namespace of the outside host.
    pub(crate) fn outside(&self) -> &str {
        self.namespaces.first().expect("made first")
    }

    /// The outside host, for commands that run there.
    pub(crate) fn outsider(&self) -> Place {
        Place {
            netns: self.outside().to_owned(),
            v4: OUTSIDER_V4.parse().unwrap(),
            v6: OUTSIDER_V6.parse().unwrap(),
        }
    }

    /// Routes packets of the outside host for `ranges` to the node.
    pub(crate) fn route_from_outside(&self, ranges: &[&str]) {
        let lines = ranges.iter().map(|range| {
            let node = if range.contains(':') {
                NODE_V6
            } else {
                NODE_V4
            };
            format!("route add {range} via {node}\n")
        });
        ip(&["-n", self.outside()], &lines.collect::<String>());
    }

    /// The next pod: `10.244.1.1`, `fd00:10:244:1::1` and so on.
    pub(crate) fn pod(&mut self) -> Place {
        self.pods += 1;
        let number = self.pods;
        let place = Place {
            netns: self.namespace(&format!("pod{number}")),
            v4: format!("10.244.1.{number}").parse().unwrap(),
            v6: format!("fd00:10:244:1::{number:x}").parse().unwrap(),
        };
        let Place { netns, v4, v6 } = &place;
        ip(
            &[],
            &format!(
                "link add pod{number} type veth peer name eth0 netns {netns}
                addr add {GATEWAY_V4}/32 dev pod{number}
                addr add {GATEWAY_V6}/128 dev pod{number} nodad
                link set pod{number} up
                route add {v4}/32 dev pod{number}
                route add {v6}/128 dev pod{number}"
            ),
        );
        inside_pod(netns, *v4, *v6);
        place
    }

    /// A pod of another node, behind the outside host: `10.244.2.1`, `fd00:10:244:2::1` and so on.
    pub(crate) fn pod_elsewhere(&mut self, number: u8) -> Place {
        let outside = self.outside().to_owned();
        let place = Place {
            netns: self.namespace(&format!("elsewhere{number}")),
            v4: format!("10.244.2.{number}").parse().unwrap(),
            v6: format!("fd00:10:244:2::{number:x}").parse().unwrap(),
        };
        let Place { netns, v4, v6 } = &place;
        sh(&format!(
            "ip netns exec {outside} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
        ));
        // The node sends such packets by its default route.
        ip(
            &["-n", &outside],
            &format!(
                "link add pod{number} type veth peer name eth0 netns {netns}
                addr add {GATEWAY_V4}/32 dev pod{number}
                addr add {GATEWAY_V6}/128 dev pod{number} nodad
                link set pod{number} up
                route add {v4}/32 dev pod{number}
                route add {v6}/128 dev pod{number}"
            ),
        );
        inside_pod(netns, *v4, *v6);
        place
    }

    fn namespace(&mut self, name: &str) -> String {
        // Unique names: namespaces belong to the whole guest, and other tests may run.
        let name = format!("{name}-{}", std::process::id());
        sh(&format!("ip netns add {name}"));
        self.namespaces.push(name.clone());
        name
    }
}

/// Configures the namespace of a pod.
fn inside_pod(netns: &str, v4: IpAddr, v6: IpAddr) {
    ip(
        &["-n", netns],
        &format!(
            "link set lo up
            addr add {v4}/32 dev eth0
            addr add {v6}/128 dev eth0 nodad
            link set eth0 up
            route add {GATEWAY_V4}/32 dev eth0
            route add default via {GATEWAY_V4} dev eth0
            route add default via {GATEWAY_V6} dev eth0"
        ),
    );
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Links first, because the kernel deletes a namespace's links later, and the next lab uses
        // the same names.
        let pods = (1..=self.pods).map(|pod| format!("link delete pod{pod}\n"));
        let names = self.namespaces.iter();
        let names = names.map(|name| format!("netns delete {name}\n"));
        let lines: String = pods.chain(names).collect();
        // A test may have deleted some of it.
        drop(batch(&["-force"], &format!("link delete eth0\n{lines}")));
    }
}

impl Place {
    /// The command, which runs inside.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.netns,
            "sh",
            "-c",
            &format!("exec {line}"),
        ]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command line inside; it must succeed.
    pub(crate) fn sh(&self, line: &str) -> String {
        sh(&format!("ip netns exec {} sh -c '{line}'", self.netns))
    }

    /// The prefix of a command line that runs inside.
    pub(crate) fn prefix(&self) -> String {
        format!("ip netns exec {}", self.netns)
    }

    /// Runs a command line inside and returns whether it succeeded.
    pub(crate) fn succeeds(&self, line: &str) -> bool {
        succeeds(&format!("{} {line}", self.prefix()))
    }

    /// Runs `what` in a thread inside.
    pub(crate) fn inside<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        let namespace = std::fs::File::open(format!("/run/netns/{}", self.netns)).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(rustix::thread::LinkNameSpaceType::Network);
                rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                what()
            });
            thread.join().expect("the thread's own panic was printed")
        })
    }

    /// A connection from inside, which stays open.
    pub(crate) fn connect(&self, target: &str) -> TcpStream {
        self.inside(|| try_connect(target))
            .unwrap_or_else(|error| panic!("{target}: {error}"))
    }

    /// Listens on `port` of the IPv4 address.
    pub(crate) fn listen(&self, port: u16) -> TcpListener {
        self.inside(|| TcpListener::bind((self.v4, port)).unwrap())
    }

    /// Starts TCP servers on `port` of both families, which reply with `name`.
    pub(crate) fn serve(&self, port: u16, name: &str) -> Vec<Process> {
        let Self { v4, v6, .. } = self;
        [format!("{v4}:{port}"), format!("[{v6}]:{port}")]
            .into_iter()
            .map(|listen| {
                let server = self.spawn(&format!("guest serve --listen {listen} --name {name}"));
                self.wait_for_server(&listen);
                server
            })
            .collect()
    }

    /// Waits until a server listens at an address of this namespace.
    pub(crate) fn wait_for_server(&self, listen: &str) {
        wait_until("a server", || self.inside(|| try_connect(listen).is_ok()));
    }

    /// Starts a command inside, which ends when the returned value is dropped.
    pub(crate) fn spawn(&self, line: &str) -> Process {
        Process::spawn(self.command(line))
    }
}

/// A child process that is killed when dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn spawn(mut command: Command) -> Self {
        Self(
            command
                .spawn()
                .unwrap_or_else(|error| panic!("{command:?}: {error}")),
        )
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The exit status, if it has exited.
    pub(crate) fn try_wait(&mut self) -> Option<std::process::ExitStatus> {
        self.0.try_wait().expect("our own child")
    }

    /// Waits for the exit.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        let mut status = None;
        wait_until("the end of a process", || {
            status = self.try_wait();
            status.is_some()
        });
        status.expect("waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Records writes of all programs to routes, links and nftables.
#[derive(Debug)]
pub(crate) struct Monitor {
    files: [std::path::PathBuf; 2],
    _programs: [Process; 2],
    folder: tempfile::TempDir,
}

impl Monitor {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spawn = |name: &str, line: &str| {
            let path = folder.path().join(name);
            let file = std::fs::File::create(&path).unwrap();
            let mut command = Command::new("sh");
            command
                .args(["-c", &format!("exec {line}")])
                .stdin(Stdio::null())
                .stdout(file);
            (path, Process::spawn(command))
        };
        let (routes, ip) = spawn("ip", "ip monitor route link address");
        let (tables, nft) = spawn("nft", "nft monitor");
        let monitor = Self {
            files: [routes, tables],
            _programs: [ip, nft],
            folder,
        };
        // Both monitors run when they print an event. The lab's own events are then removed.
        wait_until("the monitors", || {
            sh(
                "ip link add probe type veth peer name eborp && ip link del probe
                nft add table ip probe; nft delete table ip probe",
            );
            let ends = ["Deleted", "delete table ip probe"];
            let mut files = monitor.files.iter().zip(ends);
            files
                .all(|(file, end)| std::fs::read_to_string(file).is_ok_and(|all| all.contains(end)))
        });
        std::thread::sleep(Duration::from_millis(300));
        for file in &monitor.files {
            // The programs append, so they continue at the start of the truncated file.
            std::fs::File::create(file).unwrap();
        }
        monitor
    }

    /// The writes to tables, and to routes and links of an agent.
    pub(crate) fn seen(&self) -> String {
        std::thread::sleep(Duration::from_millis(300));
        debug_assert!(self.folder.path().exists());
        let [routes, tables] = self
            .files
            .each_ref()
            .map(|file| std::fs::read_to_string(file).unwrap_or_default());
        let concerns = |line: &&str| line.contains("proto 173") || line.contains("kube-ipvs0");
        let routes: String = routes.lines().filter(concerns).collect();
        routes + tables.trim_start_matches('\0')
    }
}
