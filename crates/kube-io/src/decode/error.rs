//! Describes why bytes from the API server cannot be decoded.

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("protobuf: {0}")]
    Protobuf(String),
    #[error("`{0}` is not a watch event")]
    Event(Box<str>),
}

pub(super) fn decode_error(message: impl Into<String>) -> DecodeError {
    DecodeError::Protobuf(message.into())
}
