//! Why bytes could not be understood.

/// Bytes from the kernel that make no sense. Names are those of the kernel's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Something ends before it should.
    #[error("{what} is cut short: {have} of {need} bytes")]
    Short {
        /// What it is.
        what: &'static str,
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
    /// Something that must be there is not.
    #[error("{what} is missing")]
    Missing {
        /// What it is.
        what: &'static str,
    },
    /// A value that has no meaning.
    #[error("{what} has the value {value}, which has no meaning")]
    Value {
        /// What it is.
        what: &'static str,
        /// The value.
        value: u64,
    },
}
