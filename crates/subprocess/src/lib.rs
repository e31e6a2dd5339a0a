//! Runs a program with a deadline and takes a bounded amount of its output. The only place where processes are started.

use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program may run. `nft` needs milliseconds, and seconds on a node that just booted.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Bytes of output that are taken: some 300,000 elements of a set in the JSON of `nft`.
const MOST_OUTPUT: u64 = 16 << 20;

/// Why a program gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The operating system did not start it, or its pipes broke.
    #[error("cannot be run: {0}")]
    NotRun(#[from] io::Error),
    /// It did not end in time and was killed.
    #[error("did not end within {} s and was killed", .0.as_secs())]
    Hung(Duration),
    /// It wrote more than is taken and was killed.
    #[error("wrote more than {} MiB and was killed", MOST_OUTPUT >> 20)]
    TooMuch,
    /// It ended by a signal.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// What is run, and how.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its name or path.
    pub program: &'a str,
    /// What follows the name.
    pub arguments: &'a [&'a str],
    /// Variables beside those of this process.
    pub environment: &'a [(String, String)],
    /// What it reads.
    pub input: Input<'a>,
    /// When it is killed.
    pub deadline: Duration,
}

/// What a program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// Nothing.
    None,
    /// A text.
    Text(&'a str),
    /// This process' terminal, to which its errors go as well.
    Terminal,
}

/// A process group that is killed when this is dropped, so that what the program started ends too.
struct Group(Option<Pid>);

impl<'a> Program<'a> {
    /// A program without input, with the usual [`DEADLINE`].
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
            // It fails only if nothing of the group is left.
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs `program` to its end, kills it at its deadline, and returns its exit status and output.
/// Dropping the future kills it as well, with the programs that it started.
///
/// # Errors
/// It did not start, did not end in time, wrote too much, or was killed.
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
        // Only the terminal's own group may read from it.
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut group = Group(leader.filter(|_| !at_terminal));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let (Some(mut stdin), Input::Text(input)) = (stdin, program.input) {
            // A program that ends without reading says why by its exit status.
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
        // Time is paused: the deadline passes as soon as nothing else goes on.
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
        // Without a parent it may stay as a zombie until its adoptive one looks.
        while state().is_ok_and(|state| !state.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
