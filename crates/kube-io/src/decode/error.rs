//! Says why bytes from the API server cannot be read.

/// Bytes that are not what they should be.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not the JSON that was expected.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Not the protobuf that was expected.
    #[error("protobuf: {0}")]
    Protobuf(String),
    /// An event of an unknown type.
    #[error("`{0}` is no event of a watch")]
    Event(Box<str>),
}

/// An error in a protobuf message.
pub(super) fn garbled(message: impl Into<String>) -> DecodeError {
    DecodeError::Protobuf(message.into())
}
