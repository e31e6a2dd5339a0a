//! Records what programs write to the kernel.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::process::Process;
use super::shell::{sh, wait_until};

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
