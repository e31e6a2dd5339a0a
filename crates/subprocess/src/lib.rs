//! Runs a program with a deadline and limits its output. No other code starts processes.

use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// Default time limit. `nft` needs milliseconds, but seconds on a node that has just booted.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Output limit in bytes. `nft` prints about 300,000 set elements as JSON in 16 MiB.
const MOST_OUTPUT: u64 = 16 << 20;

/// Why a program returned no result.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The operating system did not start the program, or a pipe to it failed.
    #[error("cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// The program did not exit before its deadline and was killed.
    #[error("did not end within {} s and was killed", .0.as_secs())]
    Hung(Duration),
    /// The program wrote more than the output limit and was killed.
    #[error("wrote more than {} MiB and was killed", MOST_OUTPUT >> 20)]
    TooMuch,
    /// A signal terminated the program.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// A program and how to run it.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Name or path of the executable.
    pub program: &'a str,
    /// Command-line arguments.
    pub arguments: &'a [&'a str],
    /// Environment variables, in addition to those of this process.
    pub environment: &'a [(String, String)],
    /// Standard input.
    pub input: Input<'a>,
    /// Time after which the program is killed.
    pub deadline: Duration,
}

/// The standard input of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// No input: `/dev/null`.
    None,
    /// A text, through a pipe.
    Text(&'a str),
    /// The terminal of this process. The program's standard error goes there, too.
    Terminal,
}

/// Kills a process group when dropped, so that the program's own child processes exit, too.
struct Group(Option<Pid>);

impl<'a> Program<'a> {
    /// A program without input, with the default [`DEADLINE`].
    pub fn new(program: &'a str, arguments: &'a [&'a str]) -> Self {
        Self {
            program,
            arguments,
            environment: &[],
            input: Input::None,
            deadline: DEADLINE,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Fails only if no process of the group is left.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs `program` until it exits or its deadline passes, and returns its exit status and output. Dropping the future
/// kills the program and its child processes.
///
/// # Errors
/// The program did not start, missed its deadline, wrote too much, or was killed by a signal.
pub async fn run(program: &Program<'_>) -> Result<Output, ChildError> {
    timeout(program.deadline, communicate(program))
        .await
        .unwrap_or(Err(ChildError::Hung(program.deadline)))
}

async fn communicate(program: &Program<'_>) -> Result<Output, ChildError> {
    let at_terminal = program.input == Input::Terminal;
    let (input, errors) = match program.input {
        Input::None => (Stdio::null(), Stdio::piped()),
        Input::Text(_) => (Stdio::piped(), Stdio::piped()),
        Input::Terminal => (Stdio::inherit(), Stdio::inherit()),
    };
    let mut command = Command::new(program.program);
    command
        .args(program.arguments)
        .envs(
            program
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(errors)
        .kill_on_drop(true);
    if !at_terminal {
        // Only the foreground process group may read from a terminal.
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut group = Group(leader.filter(|_| !at_terminal));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let (Some(mut stdin), Input::Text(input)) = (stdin, program.input) {
            // A program that exits without reading its input reports the reason in its exit status.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        Ok(())
    };
    let ((), stdout, stderr) = tokio::try_join!(write, read(stdout), read(stderr))?;
    let status = child.wait().await?;
    group.0 = None;
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
        run(&Program {
            input: Input::Text("input"),
            ..Program::new("sh", &["-c", line])
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn d13_a_program_that_never_ends_is_killed_at_its_deadline() {
        // Time is paused: the deadline passes as soon as all tasks wait.
        let hung = shell("exec sleep 1000000").await;
        assert!(matches!(hung, Err(ChildError::Hung(DEADLINE))), "{hung:?}");
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

    #[tokio::test]
    async fn what_a_killed_program_started_ends_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let line = format!("sleep 1000000 & echo $! > {}; wait", file.display());
        let arguments = ["-c", &line];
        let program = Program {
            deadline: Duration::from_millis(500),
            ..Program::new("sh", &arguments)
        };
        let hung = run(&program).await;
        assert!(matches!(hung, Err(ChildError::Hung(_))), "{hung:?}");
        let started = std::fs::read_to_string(file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", started.trim()));
        // A process without a parent may stay a zombie until init reaps it.
        while state().is_ok_and(|state| !state.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
