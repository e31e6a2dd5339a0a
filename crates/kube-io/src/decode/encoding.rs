//! Names the encodings of the API server, by its header `Content-Type`.

/// How the server encodes objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Every server has every kind as JSON.
    Json,
    /// About half as long. Only the kinds of Kubernetes itself can be encoded so.
    Protobuf,
}

impl Encoding {
    /// Reads the header `Content-Type`; JSON for every value that is not protobuf.
    pub fn of(content_type: &str) -> Self {
        if content_type.starts_with("application/vnd.kubernetes.protobuf") {
            Self::Protobuf
        } else {
            Self::Json
        }
    }
}
