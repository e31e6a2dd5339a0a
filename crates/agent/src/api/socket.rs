//! The agent's unix socket: accessible for root only, and never taken from a running agent.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// The listening socket; its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Accepts connections.
    pub listener: UnixListener,
    /// Removes the file.
    pub file: SocketFile,
}

/// The socket's file, removed on drop.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

/// Why the socket could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another agent answers on it.
    #[error("another agent answers at {0}; stop it, or give this one another --socket")]
    Taken(PathBuf),
    /// The file system returned an error.
    #[error(
        "the socket {path} cannot be made: {source}; run as root, or choose another place with --socket"
    )]
    Io { path: PathBuf, source: io::Error },
}

/// Creates the socket with mode 0600, and its folder with mode 0755 if it is missing. Replaces the socket of an agent
/// that no longer runs.
///
/// The file is bound under a temporary name, gets its mode, and is then renamed. So no other user can ever connect.
///
/// # Errors
/// A running agent answers on it, or the file system returns an error.
pub(crate) async fn listen(path: &Path) -> Result<Socket, SocketError> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(SocketError::Taken(path.to_owned()));
    }
    let listener = place(path).map_err(|source| SocketError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(Socket {
        listener,
        file: SocketFile(path.to_owned()),
    })
}

fn place(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(name);
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&fresh)?;
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    fs::rename(&fresh, path)?;
    Ok(listener)
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may be gone already.
        let _removed = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_owner_may_use_the_socket_and_it_is_removed_with_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/agent.sock");
        let socket = listen(&path).await.unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn the_socket_of_a_running_agent_stays_and_that_of_a_dead_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let first = listen(&path).await.unwrap();
        let error = listen(&path).await.unwrap_err();
        assert!(error.to_string().contains("--socket"), "{error}");

        // After a SIGKILL the file stays, without a listener.
        let Socket { listener, file } = first;
        drop(listener);
        std::mem::forget(file);
        assert!(path.exists());
        listen(&path).await.unwrap();
    }
}
