//! Waits for SIGTERM. The first process of a pod ignores signals without a handler, and kubelet kills it after the
//! grace period.

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::pipe;

/// Becomes readable when this process receives SIGTERM.
pub(crate) struct Termination {
    receiver: UnixStream,
}

impl Termination {
    /// Installs the signal handler.
    pub(crate) fn listen() -> io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        pipe::register(SIGTERM, sender)?;
        Ok(Self { receiver })
    }

    /// Blocks until SIGTERM.
    pub(crate) fn wait(mut self) -> io::Result<()> {
        self.receiver.read_exact(&mut [0])
    }

    /// Blocks until SIGTERM or until `source` is readable. Returns whether the process must exit and `source` is not
    /// readable.
    pub(crate) fn is_requested_before(&self, source: impl AsFd) -> io::Result<bool> {
        loop {
            let mut both = [&source.as_fd(), &self.receiver.as_fd()]
                .map(|one| PollFd::from_borrowed_fd(*one, PollFlags::IN));
            match poll(&mut both, None) {
                Ok(_) => return Ok(both.first().is_some_and(|one| one.revents().is_empty())),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
