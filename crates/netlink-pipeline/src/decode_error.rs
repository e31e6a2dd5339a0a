//! Why bytes from the kernel could not be decoded.

/// Bytes from the kernel that cannot be decoded. Names are those of the kernel's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A message, attribute or value is too short.
    #[error("{what} is cut short: {have} of {need} bytes")]
    Short {
        /// What is too short.
        what: &'static str,
        /// Bytes needed.
        need: usize,
        /// Bytes present.
        have: usize,
    },
    /// A required attribute is missing.
    #[error("{what} is missing")]
    Missing {
        /// The attribute.
        what: &'static str,
    },
    /// A value is not defined.
    #[error("{what} has the value {value}, which has no meaning")]
    Value {
        /// The attribute or field.
        what: &'static str,
        /// The value.
        value: u64,
    },
}
