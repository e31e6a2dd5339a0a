//! Runs a control plane for the lifetime of a value.

use std::path::PathBuf;
use std::process::Command;

use super::config::ControlPlaneConfig;
use super::folder::Folder;
use super::parts;
use super::process::Process;
use super::program::{self, Version};

/// A running control plane. Stopped when dropped; if this process is killed, by the next test run.
pub struct ScopedControlPlane {
    pub(super) folder: Folder,
    program: PathBuf,
}

impl ScopedControlPlane {
    /// Builds it if necessary, starts it, and waits until it is ready.
    pub fn start(version: Version) -> anyhow::Result<Self> {
        let program = program::build(version)?;
        let folder = Folder::of_test();
        let owner = Process::new(std::process::id())?;
        folder.create(ControlPlaneConfig::loopback()?, &program, Some(owner))?;
        parts::start_all(&folder)?;
        Ok(Self { folder, program })
    }

    /// Returns the program that contains every part of Kubernetes.
    pub fn program(&self) -> PathBuf {
        self.program.clone()
    }

    /// Returns a command for a part of the program, such as kubectl, with the administrator's kubeconfig.
    pub fn part(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(name)
            .env("KUBECONFIG", self.folder.kubeconfig());
        command
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig()
    }

    pub fn end(self) -> anyhow::Result<()> {
        self.folder.end()
    }
}

impl Drop for ScopedControlPlane {
    fn drop(&mut self) {
        // The next test run stops what cannot be stopped now.
        drop(self.folder.end());
    }
}
