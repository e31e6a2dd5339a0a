//! The agent's process, its input folder, and the kernel's state as ipvsadm shows it.

use std::fs;
use std::io::PipeWriter;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;

use super::lab::{Process, sh, succeeds, wait_until};

/// A folder with YAML, a state directory, and at most one running agent.
pub(crate) struct Node {
    folder: TempDir,
    arguments: Vec<String>,
    process: Option<Process>,
}

impl Node {
    /// A node named n1 whose cluster is empty.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("cluster")).unwrap();
        Self {
            folder,
            arguments: Vec::new(),
            process: None,
        }
    }

    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Runs the commands of `docs/install.md` that follow a text.
    pub(crate) fn run_documented(&self, text: &str) {
        const DOCUMENT: &str = include_str!("../../../../docs/install.md");
        let (_, rest) = DOCUMENT.split_once(text).unwrap();
        let block = rest.split("```").nth(1).unwrap();
        let block = block.strip_prefix("sh\n# on every node\n").unwrap();
        let state = self.state();
        let block = block.replace("/run/ipvs-topo", state.to_str().unwrap());
        sh(&format!("set -eu\n{block}"));
    }

    /// Writes a file of the cluster as an editor does: writes a temporary file and renames it.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let aside = self.path(".aside");
        fs::write(&aside, text).unwrap();
        fs::rename(aside, self.path("cluster").join(file)).unwrap();
    }

    /// Removes a file of the cluster, if it exists.
    pub(crate) fn remove(&self, file: &str) {
        drop(fs::remove_file(self.path("cluster").join(file)));
    }

    /// Starts the agent and waits for its first pass.
    pub(crate) fn start(&mut self) {
        self.launch(&[]);
        self.wait_ready();
    }

    /// Starts the agent with further arguments, without waiting.
    pub(crate) fn launch(&mut self, more: &[&str]) {
        let command = self.command(more);
        self.process = Some(Process::spawn(command));
    }

    /// Starts an agent that reads the cluster from the returned pipe until the pipe is closed.
    pub(crate) fn launch_reading(&mut self) -> PipeWriter {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = self.command_on(Path::new("-"), &[]);
        command.stdin(reader);
        self.process = Some(Process::spawn(command));
        writer
    }

    /// Starts the agent with `path` as `PATH`, for nft and modprobe.
    pub(crate) fn launch_with_path(&mut self, path: &str) {
        let mut command = self.command(&[]);
        command.env("PATH", path);
        self.process = Some(Process::spawn(command));
    }

    /// Starts the agent as another user.
    pub(crate) fn launch_as(&mut self, user: u32) {
        let mut command = self.command(&[]);
        command.uid(user).gid(user);
        self.process = Some(Process::spawn(command));
    }

    /// Starts the agent as root with only these capabilities.
    pub(crate) fn launch_confined(&mut self, capabilities: &str) {
        let agent = self.command(&[]);
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set", capabilities, "--no-new-privs", "--"])
            .arg(agent.get_program())
            .args(agent.get_args())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.open_log());
        self.process = Some(Process::spawn(command));
    }

    fn open_log(&self) -> fs::File {
        fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap()
    }

    fn command(&self, more: &[&str]) -> Command {
        self.command_on(&self.cluster(), more)
    }

    fn command_on(&self, cluster: &Path, more: &[&str]) -> Command {
        // Resolved before the child's PATH changes.
        let program = sh("command -v ipvs-topo");
        let mut command = Command::new(program.trim());
        command.arg("agent").arg("--cluster").arg(cluster);
        command.args(["--node-name", "n1"]);
        for address in ["--healthz-bind-address", "--metrics-bind-address"] {
            if !self.arguments.iter().any(|own| own == address) {
                command.args([address, ""]);
            }
        }
        command
            .arg("--socket")
            .arg(self.socket())
            .arg("--state-dir")
            .arg(self.state());
        command.args(&self.arguments).args(more);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(self.open_log());
        command
    }

    pub(crate) fn wait_ready(&self) {
        wait_until("the agent's first pass", || {
            self.log().contains("first pass done")
        });
    }

    /// Waits for the agent's first pass or its exit; returns the exit status.
    pub(crate) fn ready_or_dead(&mut self) -> Option<ExitStatus> {
        let mut status = None;
        wait_until("the agent's first pass or its end", || {
            status = self.process.as_mut().and_then(Process::try_wait);
            status.is_some() || self.log().contains("first pass done")
        });
        if status.is_some() {
            self.process = None;
        }
        status
    }

    /// Waits until `diff` is empty.
    pub(crate) fn wait_quiet(&self) {
        let socket = self.socket();
        let command = format!("ipvs-topo diff --socket {}", socket.display());
        wait_until("the agent to have nothing to do", || succeeds(&command));
    }

    /// Waits until `diff` only deletes: drained real servers, which get no new connections, are deleted later.
    pub(crate) fn wait_programmed(&self) {
        let socket = self.socket();
        let left = format!("ipvs-topo diff --socket {}", socket.display());
        let left = format!("! {left} | grep -q '^[+~]'");
        wait_until("the agent to have written all", || succeeds(&left));
    }

    /// Copies the files of a folder into the cluster.
    pub(crate) fn copy(&self, folder: &Path) {
        sh(&format!(
            "cp -r {}/. {}",
            folder.display(),
            self.cluster().display()
        ));
    }

    /// Waits for the agent's exit.
    pub(crate) fn wait_end(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("a running agent");
        process.wait()
    }

    /// Kills the agent with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process = None;
        self.forget_log();
    }

    /// Stops the agent with SIGTERM; it must exit with 0.
    pub(crate) fn stop(&mut self) {
        let id = self.process.as_ref().expect("a running agent").id();
        sh(&format!("kill -TERM {id}"));
        let status = self.wait_end();
        assert_eq!(
            status.code(),
            Some(0),
            "signal {:?}; {}",
            status.signal(),
            self.log()
        );
        self.forget_log();
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.as_ref().expect("a running agent").id()
    }

    /// Page faults of exited child processes of the agent (`cminflt`, proc(5)). Constant while the
    /// agent starts no process.
    pub(crate) fn childrens_faults(&self) -> u64 {
        let id = self.id();
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        fields.split_whitespace().nth(8).unwrap().parse().unwrap()
    }

    /// The agent's log since the last [`Self::forget_log`].
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Clears the log before the next agent starts.
    pub(crate) fn forget_log(&self) {
        drop(fs::remove_file(self.path("log")));
    }

    /// Waits until the log contains `words`.
    pub(crate) fn wait_log(&self, words: &str) {
        wait_until(&format!("{words:?} in the log:\n{}", self.log()), || {
            self.log().contains(words)
        });
    }

    /// The line of the log that contains `words`; there must be exactly one.
    pub(crate) fn only_line(&self, words: &str) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(words)).collect();
        assert_eq!(lines.len(), 1, "{words:?} in the log:\n{log}");
        lines[0].to_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("agent.sock")
    }

    /// The folder of the ownership record.
    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn cluster(&self) -> PathBuf {
        self.path("cluster")
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.folder.path(), name)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A failure here must not hide the test's own failure.
            let table = Command::new("ipvsadm").arg("-Sn").output();
            let table = table.map_or_else(
                |error| error.to_string(),
                |output| String::from_utf8_lossy(&output.stdout).into_owned(),
            );
            // cargo shows only the end of a long output.
            let table: String = table.split_inclusive('\n').take(100).collect();
            eprintln!(
                "--- the agent's log:\n{}--- ipvsadm -Sn:\n{table}",
                self.log()
            );
        }
    }
}

/// `ipvsadm-save -n`, sorted.
pub(crate) fn kernel() -> Vec<String> {
    let mut lines: Vec<_> = sh("ipvsadm -Sn")
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.sort_unstable();
    lines
}

/// Waits until the kernel has exactly `lines`, in any order.
pub(crate) fn wait_kernel(lines: &[&str]) {
    let mut wanted: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
    wanted.sort_unstable();
    let mut held = Vec::new();
    wait_until(&format!("{wanted:#?} in the kernel"), || {
        held = kernel();
        held == wanted
    });
}
