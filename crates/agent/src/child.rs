//! Runs a program of the node with a deadline, and takes a bounded amount of output.

use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may run. `nft` needs milliseconds, and seconds on a node that just booted.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Bytes of output that are taken: some 300,000 elements of a set in the JSON of `nft`.
const MOST_OUTPUT: u64 = 16 << 20;

/// Why a program gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// The operating system did not start it, or its pipes broke.
    #[error("cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// It did not end in time and was killed.
    #[error("did not end within {} s and was killed", DEADLINE.as_secs())]
    Hung,
    /// It wrote more than is taken and was killed.
    #[error("wrote more than {} MiB and was killed", MOST_OUTPUT >> 20)]
    TooMuch,
    /// It ended by a signal.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// Runs `program` to its end, kills it at [`DEADLINE`], and returns its exit status and output.
/// Dropping the future kills it as well.
pub(crate) async fn run(
    program: &str,
    arguments: &[&str],
    input: Option<&str>,
) -> Result<Output, ChildError> {
    timeout(DEADLINE, communicate(program, arguments, input))
        .await
        .unwrap_or(Err(ChildError::Hung))
}

async fn communicate(
    program: &str,
    arguments: &[&str],
    input: Option<&str>,
) -> Result<Output, ChildError> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(input.map_or_else(Stdio::null, |_| Stdio::piped()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A program that ends without reading says why by its exit status.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        Ok(())
    };
    let ((), stdout, stderr) = tokio::try_join!(write, read(stdout), read(stderr))?;
    let status = child.wait().await?;
    match std::os::unix::process::ExitStatusExt::signal(&status) {
        Some(signal) => Err(ChildError::Signal(signal)),
        None => Ok(Output {
            status,
            stdout,
            stderr,
        }),
    }
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, ChildError> {
    let mut bytes = Vec::new();
    let Some(pipe) = pipe else {
        return Ok(bytes);
    };
    let read = pipe.take(MOST_OUTPUT + 1).read_to_end(&mut bytes).await?;
    if u64::try_from(read).is_ok_and(|read| read <= MOST_OUTPUT) {
        Ok(bytes)
    } else {
        Err(ChildError::TooMuch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(line: &str) -> Result<Output, ChildError> {
        run("sh", &["-c", line], Some("input")).await
    }

    #[tokio::test(start_paused = true)]
    async fn d13_a_program_that_never_ends_is_killed_at_its_deadline() {
        // Time is paused: the deadline passes as soon as nothing else goes on.
        let hung = shell("exec sleep 1000000").await;
        assert!(matches!(hung, Err(ChildError::Hung)), "{hung:?}");
    }

    #[tokio::test]
    async fn d13_a_program_that_writes_without_end_is_killed() {
        let flood = shell("exec head -c 100000000 /dev/zero").await;
        assert!(matches!(flood, Err(ChildError::TooMuch)));
    }

    #[tokio::test]
    async fn a_program_that_is_killed_has_no_result() {
        let killed = shell("kill -9 $$").await;
        assert!(matches!(killed, Err(ChildError::Signal(9))), "{killed:?}");
    }

    #[tokio::test]
    async fn a_program_gets_its_input_and_gives_output_and_status() {
        let Output {
            status,
            stdout,
            stderr,
        } = shell("cat; echo no >&2; exit 3").await.unwrap();
        assert_eq!(
            (status.code(), &*stdout, &*stderr),
            (Some(3), &b"input"[..], &b"no\n"[..])
        );
    }
}
