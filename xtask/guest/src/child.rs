//! Kills child processes that are no longer needed.

use std::process::Child;

/// A child process that is killed when dropped, without a warning.
pub(crate) struct KillOnDrop(pub(crate) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
