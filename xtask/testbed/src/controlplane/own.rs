//! A control plane that belongs to this process and ends with it.

use std::path::PathBuf;
use std::process::Command;

use super::folder::Folder;
use super::parts;
use super::process::Process;
use super::program::{self, Version};
use super::site::Site;

/// A running control plane; ended when dropped, and by the next one if this process is killed.
pub struct Own {
    /// Where it lives.
    pub(super) folder: Folder,
    program: PathBuf,
}

impl Own {
    /// Builds it if need be, starts it, and returns when it is ready.
    pub fn start(version: Version) -> anyhow::Result<Self> {
        let program = program::build(version)?;
        let folder = Folder::of_test();
        let owner = Process::new(std::process::id())?;
        folder.create(Site::loopback()?, &program, Some(owner))?;
        parts::start_all(&folder)?;
        Ok(Self { folder, program })
    }

    /// The program that holds every part of Kubernetes.
    pub fn program(&self) -> PathBuf {
        self.program.clone()
    }

    /// A part of the program, such as kubectl, as the administrator of this control plane.
    pub fn part(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(name)
            .env("KUBECONFIG", self.folder.kubeconfig());
        command
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig()
    }

    /// Ends it.
    pub fn end(self) -> anyhow::Result<()> {
        self.folder.end()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // What cannot be ended now is ended by the next one that starts.
        drop(self.folder.end());
    }
}
