//! The encodings of the API server, by the header `Content-Type`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Every server supports it for every kind.
    Json,
    /// About half as long. Only built-in kinds support it.
    Protobuf,
}

impl Encoding {
    /// Reads the header `Content-Type`. Every value that is not protobuf means JSON.
    pub fn of(content_type: &str) -> Self {
        if content_type.starts_with("application/vnd.kubernetes.protobuf") {
            Self::Protobuf
        } else {
            Self::Json
        }
    }
}
