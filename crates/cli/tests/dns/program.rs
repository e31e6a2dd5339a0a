//! Starts the program on a cluster in a folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

/// Two nodes in two zones.
const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}, spec: {podCIDRs: [127.0.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}}, spec: {podCIDRs: [127.0.2.0/24]}}
---
";

/// A headless Service whose clients prefer their zone, and one with a cluster IP.
const SERVICES: &str = "
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop, annotations: {topology.ipvs-topo.io/keys: 'zone,*'}},
  spec: {clusterIP: None, ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.10, ports: [{name: http, port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: away, namespace: shop}, spec: {type: ExternalName, externalName: www.example.com}}
";

/// How long something may take that should take milliseconds: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Program {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Where the metrics and the health are, if the options ask for them.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) health: Option<SocketAddr>,
    pub(crate) folder: TempDir,
    lines: Receiver<String>,
}

impl Program {
    /// Answers for the cluster with these endpoints of `cart`: addresses and nodes.
    pub(crate) fn with(endpoints: &[(&str, &str)], options: &[&str]) -> Self {
        let folder = cluster();
        write_endpoints(folder.path(), endpoints);
        let program = Self::in_folder(folder, options);
        program.line_with("the cluster is read");
        program
    }

    pub(crate) fn in_folder(folder: TempDir, options: &[&str]) -> Self {
        let path = folder.path().to_str().unwrap().to_owned();
        let mut all = vec!["--cluster", &path];
        all.extend(options);
        Self::start(folder, &all)
    }

    pub(crate) fn start(folder: TempDir, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ipvs-topo"))
            .args(["dns", "--node", "n1", "--listen", "127.0.0.1:0"])
            .args(options)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        let mut program = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            metrics: None,
            health: None,
            folder,
            lines,
        };
        program.read_addresses();
        program
    }

    /// Reads the first lines of the log, which have the addresses.
    fn read_addresses(&mut self) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let address = || line.split(' ').find_map(|word| word.parse().ok());
            if line.contains("metrics on") {
                self.metrics = address();
            } else if line.contains("health on") {
                self.health = address();
            } else if line.contains("answering for") {
                self.address = address().unwrap();
                return;
            }
        }
    }

    /// The next line of the log with this text.
    pub(crate) fn line_with(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// The lines that were logged since the last look.
    pub(crate) fn more_lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Sends a signal and returns the exit code.
    pub(crate) fn end(mut self, signal: rustix::process::Signal) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A folder with Nodes and Services, and no endpoints.
pub(crate) fn cluster() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), format!("{NODES}{SERVICES}")).unwrap();
    folder
}

/// Replaces the endpoints of `cart`.
pub(crate) fn write_endpoints(folder: &Path, endpoints: &[(&str, &str)]) {
    let endpoints: Vec<String> = endpoints
        .iter()
        .map(|(address, node)| format!("{{addresses: [{address}], nodeName: {node}}}"))
        .collect();
    let slice = format!(
        "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: cart-1, namespace: shop, labels: {{kubernetes.io/service-name: cart, service.kubernetes.io/headless: ''}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{}]
",
        endpoints.join(", ")
    );
    // Renamed into place, so that the program never reads half of it.
    let new: PathBuf = folder.join("slice.new");
    fs::write(&new, slice).unwrap();
    fs::rename(new, folder.join("slice.yaml")).unwrap();
}
