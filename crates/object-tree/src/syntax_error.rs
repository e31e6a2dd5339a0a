//! The error of a text that is refused.

/// Why a text is not YAML that this program accepts. The whole text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// The text could not be read to its end.
    #[error("{0}")]
    Io(String),
    /// The text breaks the rules of YAML at `line`.
    #[error("{message}")]
    Broken {
        /// Counted from 1.
        line: u32,
        /// The parser's message.
        message: String,
    },
    /// The text is YAML, but costs more than the objects of any cluster.
    #[error("{message}")]
    TooMuch {
        /// Counted from 1.
        line: u32,
        /// The limit that was exceeded.
        message: String,
    },
}
