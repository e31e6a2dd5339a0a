//! Exit codes of commands, and their messages.

use std::process::ExitCode;

use agent_api::client::QueryError;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Success: exit 0.
    Fine,
    /// A difference or a problem was found and printed: exit 1.
    Trouble,
}

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the input is wrong: exit 2.
    Input(anyhow::Error),
    /// The environment is at fault, such as no agent, no permission or no kernel module: exit 1.
    Trouble(anyhow::Error),
}

impl Failure {
    pub fn input(message: impl std::fmt::Display) -> Self {
        Self::Input(anyhow::anyhow!("{message}"))
    }

    pub fn trouble(message: impl std::fmt::Display) -> Self {
        Self::Trouble(anyhow::anyhow!("{message}"))
    }

    /// The message with all causes, on one line.
    pub fn message(&self) -> String {
        let (Self::Input(error) | Self::Trouble(error)) = self;
        format!("{error:#}")
    }

    pub fn code(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Trouble(_) => 1,
        }
    }
}

impl ExitStatus {
    /// `Trouble` if `found`.
    pub fn of(found: bool) -> Self {
        if found { Self::Trouble } else { Self::Fine }
    }

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
