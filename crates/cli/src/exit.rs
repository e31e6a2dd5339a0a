//! How a command ends: the three exit codes, and the message that goes with them.

use std::process::ExitCode;

use agent_api::client::QueryError;

/// How a command that ran to its end came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Nothing to say: exit 0.
    Fine,
    /// A difference or trouble was found, and was printed: exit 1.
    Trouble,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the input is wrong: exit 2.
    Input(anyhow::Error),
    /// Something around us is: no agent, no permission, no kernel module: exit 1.
    Trouble(anyhow::Error),
}

impl Failure {
    /// A failure of usage or input, in words.
    pub fn input(message: impl std::fmt::Display) -> Self {
        Self::Input(anyhow::anyhow!("{message}"))
    }

    /// A failure of the surroundings, in words.
    pub fn trouble(message: impl std::fmt::Display) -> Self {
        Self::Trouble(anyhow::anyhow!("{message}"))
    }

    /// The message with every cause, on one line.
    pub fn message(&self) -> String {
        let (Self::Input(error) | Self::Trouble(error)) = self;
        format!("{error:#}")
    }

    /// The exit code of this failure.
    pub fn code(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Trouble(_) => 1,
        }
    }
}

impl ExitStatus {
    /// Trouble if any was found.
    pub fn of(found: bool) -> Self {
        if found { Self::Trouble } else { Self::Fine }
    }

    /// The exit code of this outcome.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Trouble => 1,
        }
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::NotFound(_) => Self::input(error),
            QueryError::Failed(_) => Self::trouble(error),
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(outcome: ExitStatus) -> Self {
        Self::from(outcome.code())
    }
}
