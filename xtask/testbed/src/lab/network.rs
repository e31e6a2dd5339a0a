//! Creates the lab's network: a namespace with a bridge, a tap for each guest, and the control plane's address.
//!
//! The namespace lives as long as the process that holds it. It needs no root, because it is created together with a
//! user namespace. Programs that run in it beside the guests are clients outside the cluster.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::folder::Folder;
use crate::controlplane::process::Process;
use crate::vm::tools::Tools;

/// The address of the namespace itself on the bridge: the nodes' router and the API server.
pub const OUTSIDE: &str = "192.0.2.1";

/// The bridge of the namespace and the guests.
pub(super) const BRIDGE: &str = "br0";

/// Limit for the holder to enter its namespace.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Network {
    holder: u32,
}

impl Network {
    /// Creates it, with taps for `nodes` guests.
    pub(super) fn start(folder: &Folder, tools: &Tools, nodes: usize) -> anyhow::Result<Self> {
        let child = Command::new("unshare")
            .args(["--map-root-user", "--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start `unshare`: install the package util-linux")?;
        let holder = Process::new(child.id())?;
        folder.begin(holder.clone())?;
        wait_until_inside(&holder)?;
        let network = Self::of(&holder);
        network.ip(tools, &devices(nodes))?;
        network.forward()?;
        Ok(network)
    }

    /// Returns the network that `holder` keeps alive.
    pub(super) fn of(holder: &Process) -> Self {
        Self {
            holder: holder.pid(),
        }
    }

    /// Returns the command prefix that enters the namespace.
    pub(super) fn launch(&self) -> Vec<String> {
        let target = self.holder.to_string();
        [
            "nsenter",
            "--target",
            &target,
            "--user",
            "--net",
            "--preserve-credentials",
            "--",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Returns a command that runs `program` in the namespace.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut words = self.launch().into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(program);
        command
    }

    /// Routes addresses to nodes: each entry has a node's address and a range.
    pub(super) fn route(&self, tools: &Tools, ranges: &[(String, String)]) -> anyhow::Result<()> {
        let routes = ranges
            .iter()
            .map(|(node, range)| format!("route replace {range} via {node}\n"));
        self.ip(tools, &routes.collect::<String>())
    }

    /// Runs the lines of an `ip` batch.
    fn ip(&self, tools: &Tools, lines: &str) -> anyhow::Result<()> {
        let mut words = tools.invocation("ip")?.into_iter();
        let mut child = self
            .command(words.next().unwrap_or_default())
            .args(words)
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start `nsenter`: install the package util-linux")?;
        let mut input = child.stdin.take().context("ip has no input")?;
        input.write_all(lines.as_bytes())?;
        drop(input);
        let done = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.success(),
            "the lab's network cannot be made: {said}"
        );
        Ok(())
    }

    fn forward(&self) -> anyhow::Result<()> {
        let mut sh = self.command("sh");
        sh.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
        crate::vm::command::output(&mut sh).map(drop)
    }
}

/// Returns the commands that create the bridge and its ports.
fn devices(nodes: usize) -> String {
    let mut lines = format!(
        "link set lo up\nlink add {BRIDGE} type bridge\naddress add {OUTSIDE}/24 dev {BRIDGE}\n\
         link set {BRIDGE} up\n"
    );
    for number in 1..=nodes {
        lines.extend([format!(
            "tuntap add tap{number} mode tap\nlink set tap{number} master {BRIDGE}\nlink set tap{number} up\n"
        )]);
    }
    lines
}

/// Waits until the holder runs `sleep`: then it is inside its namespace.
fn wait_until_inside(holder: &Process) -> anyhow::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    let name = Path::new("/proc")
        .join(holder.pid().to_string())
        .join("comm");
    loop {
        if !holder.is_running() {
            bail!(
                "no network namespace can be made: this user may not make user namespaces \
                 (`sysctl kernel.unprivileged_userns_clone`, `user.max_user_namespaces`)"
            );
        }
        if std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "sleep") {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the namespace's holder hangs");
        std::thread::sleep(Duration::from_millis(10));
    }
}
