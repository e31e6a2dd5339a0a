//! The system calls of a running process, recorded by strace.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{Process, wait_within};

/// The guest is emulated.
const LONG: Duration = Duration::from_secs(200);

pub(crate) struct SystemCalls {
    folder: TempDir,
    _strace: Process,
}

impl SystemCalls {
    /// Records the calls `names` (`sendto,sendmsg`) of a process and all its threads from now on.
    pub(crate) fn of(process: u32, names: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let mut strace = Command::new("sh");
        strace.args([
            "-c",
            &format!("exec strace -f -e trace={names} -o {path}/calls -p {process} 2>{path}/log"),
        ]);
        let strace = Process::spawn(strace);
        let is_attached = || {
            let log = fs::read_to_string(folder.path().join("log"));
            log.is_ok_and(|log| log.contains("attached"))
        };
        wait_within(LONG, "strace", is_attached);
        Self {
            folder,
            _strace: strace,
        }
    }

    /// The calls so far, a line each: `17 socket(AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_NETFILTER) = 12`.
    pub(crate) fn so_far(&self) -> String {
        fs::read_to_string(self.folder.path().join("calls")).unwrap()
    }
}
