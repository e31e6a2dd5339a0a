//! Describes a problem that a rule found: where, what is wrong, and what to do.

use std::fmt;

/// One broken rule. Its text ends with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    path: String,
    /// From 1; 0 means the whole file.
    line: usize,
    message: String,
}

impl Problem {
    /// A problem at one line of a file.
    pub(super) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }

    /// A problem of the file as a whole.
    pub(super) fn in_file(path: &str, message: impl Into<String>) -> Self {
        Self::at(path, 0, message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

#[cfg(test)]
pub(super) fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}
