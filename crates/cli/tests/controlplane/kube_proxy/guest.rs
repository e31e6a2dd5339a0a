//! The guest with kube-proxy, which prints the table of each generation.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::kubectl::variable;

/// The first table also waits for the boot and the start of kube-proxy.
const PATIENCE: Duration = Duration::from_secs(1200);

/// The host's loopback in a guest.
const FROM_GUEST: &str = "10.0.2.2";

/// Lines of the guest to show with a failure.
const SHOWN: usize = 60;

pub(crate) struct Guest {
    child: Child,
    lines: Receiver<String>,
}

impl Guest {
    /// Boots a guest that exits after the generation `last`. `folder` must outlive the boot.
    pub(crate) fn start(folder: &Path, last: u16) -> Self {
        let program = variable("CONTROLPLANE_PROGRAM");
        let name = Path::new(&program).file_name().unwrap().to_str().unwrap();
        let kubeconfig = fs::read_to_string(variable("KUBECONFIG")).unwrap();
        let [script, access] = ["guest.sh", "kubeconfig"].map(|name| folder.join(name));
        fs::write(&script, include_str!("guest.sh")).unwrap();
        fs::write(&access, kubeconfig.replace("127.0.0.1", FROM_GUEST)).unwrap();
        let mut child = Command::new(variable("CONTROLPLANE_XTASK"))
            .args(["vm", "run", "--bare", "--network", "--kube-proxy-tools"])
            .args(["--memory", "2048", "--limit", "60", "--add", &program])
            .args(
                [&script, &access]
                    .iter()
                    .flat_map(|path| [Path::new("--add"), path]),
            )
            .args(["--", &format!("sh guest.sh /root/{name} {last}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.all(|line| send.send(line).is_ok())
        });
        Self { child, lines }
    }

    /// The lines of `ipvsadm-save -n` of a generation.
    pub(crate) fn table(&self, generation: u16) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let [begin, end] = ["table", "end"].map(|word| format!("{word} {generation}"));
        let mut table = None;
        let mut latest = VecDeque::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no table {generation}; the guest's last lines: {latest:#?}");
            };
            let line = line.trim().to_owned();
            match &mut table {
                Some(table) if line == end => return std::mem::take(table),
                Some(table) => table.push(line),
                None if line == begin => table = Some(Vec::new()),
                None => {
                    latest.push_back(line);
                    latest.drain(..latest.len().saturating_sub(SHOWN));
                }
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The guest ends by itself, when no generation follows.
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}
