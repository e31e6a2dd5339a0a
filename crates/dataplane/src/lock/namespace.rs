//! Prevents two agents in one network namespace: both would write the same IPVS table, even with different state
//! folders.
//!
//! The lock is the name of an abstract unix socket. Each network namespace has its own names, and the kernel releases a
//! name when the process exits. Any process in the namespace can take the name. So the lock counts only if root or the
//! agent's own user holds it, and no other user can prevent the agent's start.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{bind, connect, listen, socket_with};
use rustix::process::geteuid;

use super::error::LockError;

/// Name of the abstract socket.
const NAME: &[u8] = b"ipvs-topo/agent";

/// The lock; without a socket if another user holds the name.
#[derive(Debug)]
pub struct NamespaceLock {
    _socket: Option<OwnedFd>,
}

impl NamespaceLock {
    /// Acquires the lock. Does not wait for another agent.
    pub fn acquire() -> Result<Self, LockError> {
        let refused = |errno: Errno| LockError::Namespace(errno.into());
        let address = SocketAddrUnix::new_abstract_name(NAME).map_err(refused)?;
        let socket = socket().map_err(refused)?;
        match bind(&socket, &address) {
            Ok(()) => listen(&socket, 1).map_err(refused)?,
            Err(Errno::ADDRINUSE) => return Self::held(holder(&address)),
            Err(errno) => return Err(refused(errno)),
        }
        Ok(Self {
            _socket: Some(socket),
        })
    }

    fn held(holder: io::Result<Holder>) -> Result<Self, LockError> {
        let holder = holder.ok();
        if let Some(Holder { pid, .. }) = holder.filter(Holder::is_trusted) {
            return Err(LockError::TakenNamespace(pid));
        }
        let user = holder.map_or_else(|| "unknown".to_owned(), |holder| holder.user.to_string());
        tracing::warn!(
            user,
            "a process that is not an agent has the name @ipvs-topo/agent in this network namespace; a second agent would not \
             be noticed"
        );
        Ok(Self { _socket: None })
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

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Asks the kernel which process listens on the address, without waiting.
fn holder(address: &SocketAddrUnix) -> io::Result<Holder> {
    let socket = socket()?;
    connect(&socket, address)?;
    let stream = tokio::net::UnixStream::from_std(UnixStream::from(socket))?;
    let peer = stream.peer_cred()?;
    Ok(Holder {
        user: peer.uid(),
        pid: peer.pid().filter(|pid| *pid > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tests of a run share one network namespace, so this is a single test.
    #[tokio::test]
    async fn a_second_agent_names_the_first_and_another_user_stops_no_agent() {
        let first = NamespaceLock::acquire().unwrap();
        let error = NamespaceLock::acquire().unwrap_err().to_string();
        let me = format!("process {})", std::process::id());
        assert!(
            error.contains(&me) && error.contains("network namespace"),
            "{error}"
        );
        drop(first);
        drop(NamespaceLock::acquire().unwrap());
        let nobody = Holder {
            user: 65534,
            pid: None,
        };
        assert!(NamespaceLock::held(Ok(nobody)).is_ok());
        assert!(NamespaceLock::held(Err(Errno::CONNREFUSED.into())).is_ok());
        let hidden = Holder { user: 0, ..nobody };
        let error = NamespaceLock::held(Ok(hidden)).unwrap_err().to_string();
        assert!(error.contains("process unknown"), "{error}");
    }
}
