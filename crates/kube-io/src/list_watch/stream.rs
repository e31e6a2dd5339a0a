//! Holds an open watch: its body and the bytes of an event that is not complete yet.

use crate::connection::Chunks;
use crate::decode::{Encoding, Framer};

pub(super) struct Stream {
    pub(super) chunks: Chunks,
    pub(super) framer: Framer,
}

impl Stream {
    pub(super) fn new(chunks: Chunks) -> Self {
        let framer = Framer::of(chunks.form());
        Self { chunks, framer }
    }

    /// The encoding that the server chose.
    pub(super) fn encoding(&self) -> Encoding {
        self.chunks.form()
    }
}
