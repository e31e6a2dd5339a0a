//! Prevents two agents on one state folder, which would share one ownership record, or in one network namespace.

mod error;
mod namespace;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub use error::LockError;
pub use namespace::NamespaceLock;

/// The lock file in the state folder. It is never deleted: otherwise two agents could lock two files of this name.
const FILE: &str = "lock";
/// Mode of the lock file. Another user who can open it could lock it, and no agent would start.
const MODE: u32 = 0o600;

/// How often, and with which pause, to look for the holder's process id, which the holder writes after it has the lock.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// The lock. The kernel releases it when the process exits for any reason.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Acquires the lock of `directory`, which is created if it is missing. Does not wait for another agent.
    pub fn acquire(directory: &Path) -> Result<Self, LockError> {
        let refused = |source| LockError::Io {
            directory: directory.to_owned(),
            source,
        };
        fs::create_dir_all(directory).map_err(refused)?;
        let path = directory.join(FILE);
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE);
        let mut file = opened.open(&path).map_err(refused)?;
        // An earlier version made the file readable for all users.
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(refused)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                return Err(LockError::Taken {
                    pid: holder(&path),
                    directory: directory.to_owned(),
                });
            }
            locked => locked.map_err(|errno| refused(errno.into()))?,
        }
        // On a full disk only the process id is missing from another agent's error message.
        drop(
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id())),
        );
        Ok(Self { _file: file })
    }
}

/// Reads the process id of the holder.
fn holder(path: &Path) -> String {
    for _ in 0..LOOKS {
        let text = fs::read_to_string(path).unwrap_or_default();
        if !text.trim().is_empty() {
            return text.trim().to_owned();
        }
        sleep(PAUSE);
    }
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn no_other_user_can_open_the_lock_even_if_an_earlier_version_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        drop(Lock::acquire(folder.path()).unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(Lock::acquire(folder.path()).unwrap());
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn of_agents_that_start_together_one_continues_and_the_others_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, barrier) = (folder.path().join("state"), Barrier::new(8));
        let start = || {
            barrier.wait();
            Lock::acquire(&folder)
        };
        let taken: Vec<_> = std::thread::scope(|scope| {
            let agents: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            agents
                .into_iter()
                .map(|agent| agent.join().unwrap())
                .collect()
        });
        let (had, refused): (Vec<_>, Vec<_>) = taken.into_iter().partition(Result::is_ok);
        assert_eq!((had.len(), refused.len()), (1, 7));
        let me = format!("process {})", std::process::id());
        for error in refused {
            let error = error.unwrap_err().to_string();
            assert!(error.contains(&me), "{error}");
        }
        drop(had);
        // A process that another test starts at this moment has the file, too, until it executes its program.
        let is_free = (0..LOOKS).any(|_| {
            sleep(PAUSE);
            Lock::acquire(&folder).is_ok()
        });
        assert!(is_free, "no agent has it any more");
    }
}
