//! Being told to end. A pod's first process ignores what it does not ask for, and is killed when it takes too long.

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGTERM;
use signal_hook::low_level::pipe;

/// Has something to read once this process was told to end.
pub(crate) struct Ending {
    told: UnixStream,
}

impl Ending {
    /// Asks for it; without this a pod's first process is never told.
    pub(crate) fn listen() -> io::Result<Self> {
        let (told, tell) = UnixStream::pair()?;
        pipe::register(SIGTERM, tell)?;
        Ok(Self { told })
    }

    /// Waits for it.
    pub(crate) fn wait(mut self) -> io::Result<()> {
        self.told.read_exact(&mut [0])
    }

    /// Waits until it comes or `source` has something to read; whether it comes and there is nothing to read.
    pub(crate) fn comes_before(&self, source: impl AsFd) -> io::Result<bool> {
        loop {
            let mut both = [&source.as_fd(), &self.told.as_fd()]
                .map(|one| PollFd::from_borrowed_fd(*one, PollFlags::IN));
            match poll(&mut both, None) {
                Ok(_) => return Ok(both.first().is_some_and(|one| one.revents().is_empty())),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
