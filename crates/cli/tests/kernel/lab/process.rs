//! A child process that ends with the test.

use std::process::{Child, Command};

use super::shell::wait_until;

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
