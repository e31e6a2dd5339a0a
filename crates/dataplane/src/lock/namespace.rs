//! Prevents two agents in one network namespace: both would write the same IPVS table, even with different state
//! folders.
//!
//! The lock is the name of an abstract unix socket. Each network namespace has its own names, and the kernel releases a
//! name when the process exits. Any process in the namespace can take the name. So the lock counts only if root or the
//! agent's own user holds it, and no other user can prevent the agent's start.
//!
//! A starting agent connects to learn who holds the name. The holder accepts and drops each connection on a thread of
//! its own: a connection that is never accepted stays in the queue, and a full queue would hide the holder.

use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle, sleep};

use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{connect, shutdown, socket_with};
use rustix::process::geteuid;

use super::error::LockError;
use super::{LOOKS, PAUSE};

/// Name of the abstract socket.
const NAME: &[u8] = b"ipvs-topo/agent";

/// The lock; without a name if another user holds it.
#[derive(Debug)]
pub struct NamespaceLock {
    _name: Option<HeldName>,
}

impl NamespaceLock {
    /// Acquires the lock. Does not wait for another agent, and at most 200 ms for a holder that does not say who it is.
    pub fn acquire() -> Result<Self, LockError> {
        let address = SocketAddr::from_abstract_name(NAME).map_err(LockError::Namespace)?;
        for _ in 0..LOOKS {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => {
                    let name = HeldName::serve(listener).map_err(LockError::Namespace)?;
                    return Ok(Self { _name: Some(name) });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(LockError::Namespace(error)),
            }
            if let Ok(holder) = holder() {
                return Self::held(Some(holder));
            }
            // The holder's queue is full, or it does not listen yet, or it has just exited.
            sleep(PAUSE);
        }
        Self::held(None)
    }

    fn held(holder: Option<Holder>) -> Result<Self, LockError> {
        if let Some(Holder { pid, .. }) = holder.filter(Holder::is_trusted) {
            return Err(LockError::TakenNamespace(pid));
        }
        let user = holder.map_or_else(|| "unknown".to_owned(), |holder| holder.user.to_string());
        tracing::warn!(
            user,
            "a process that is not an agent has the name @ipvs-topo/agent in this network namespace; a second agent would not \
             be noticed"
        );
        Ok(Self { _name: None })
    }
}

/// The name while this process holds it.
#[derive(Debug)]
struct HeldName {
    listener: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
}

impl HeldName {
    fn serve(listener: UnixListener) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let accepted = Arc::clone(&listener);
        let thread = thread::Builder::new().name("namespace-lock".to_owned());
        let thread = thread.spawn(move || accept_all(&accepted))?;
        Ok(Self {
            listener,
            thread: Some(thread),
        })
    }
}

impl Drop for HeldName {
    /// Ends the thread, so that the name is free afterwards.
    fn drop(&mut self) {
        let ended = shutdown(&*self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take().filter(|_| ended.is_ok()) {
            drop(thread.join());
        }
    }
}

/// Accepts and drops connections until the socket is shut down.
fn accept_all(listener: &UnixListener) {
    loop {
        match listener.accept() {
            Ok(connection) => drop(connection),
            // `accept` fails with EINVAL after a shutdown.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            // No file descriptor is free.
            Err(_) => sleep(PAUSE),
        }
    }
}

/// The process that holds the name.
#[derive(Debug, Clone, Copy)]
struct Holder {
    /// The user id.
    user: u32,
    /// The process id; `None` if it is in another PID namespace.
    pid: Option<i32>,
}

impl Holder {
    /// Whether it may be an agent.
    fn is_trusted(&self) -> bool {
        self.user == 0 || self.user == geteuid().as_raw()
    }
}

/// Asks the kernel which process listens on the address, without waiting.
fn holder() -> io::Result<Holder> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(NAME)?)?;
    let stream = tokio::net::UnixStream::from_std(UnixStream::from(socket))?;
    let peer = stream.peer_cred()?;
    Ok(Holder {
        user: peer.uid(),
        pid: peer.pid().filter(|pid| *pid > 0),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// All tests of a run share one network namespace, so this is a single test.
    #[tokio::test]
    async fn a_second_agent_names_the_first_and_another_user_stops_no_agent() {
        let first = NamespaceLock::acquire().unwrap();
        let me = format!("process {})", std::process::id());
        for attempt in 1..=5 {
            let error = NamespaceLock::acquire().unwrap_err().to_string();
            assert!(
                error.contains(&me) && error.contains("network namespace"),
                "attempt {attempt}: {error}"
            );
        }
        drop(first);
        drop(NamespaceLock::acquire().unwrap());
        silent_holder_delays_a_start_only_briefly();
        let nobody = Holder {
            user: 65534,
            pid: None,
        };
        assert!(NamespaceLock::held(Some(nobody)).is_ok());
        assert!(NamespaceLock::held(None).is_ok());
        let hidden = Holder { user: 0, ..nobody };
        let error = NamespaceLock::held(Some(hidden)).unwrap_err().to_string();
        assert!(error.contains("process unknown"), "{error}");
    }

    /// A holder that listens and never accepts. It has this process's user, so the first two starts still learn who it
    /// is.
    fn silent_holder_delays_a_start_only_briefly() {
        let address = SocketAddr::from_abstract_name(NAME).unwrap();
        let silent = UnixListener::bind_addr(&address).unwrap();
        rustix::net::listen(&silent, 1).unwrap();
        let began = Instant::now();
        let starts: Vec<_> = (0..3).map(|_| NamespaceLock::acquire().is_ok()).collect();
        assert_eq!(starts, [false, false, true]);
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}
