//! Defines how the catalog reads files, and what it keeps of each.

use std::sync::Arc;

use crate::source::parse::{Claim, ParsedObject};
use crate::source::text::Text;
use crate::warning::Warning;

/// The largest number of events in a batch.
pub(super) const BATCH: usize = 256;

/// Reads files. It is a trait so that tests need no disk.
pub(crate) trait Files {
    /// Reads a file. Takes the unchanged parts from `known`, and passes the valid objects of the
    /// other parts to `take` (again, if the file changed while it was read). Returns `Ok(None)` if
    /// the file does not exist.
    fn read(
        &mut self,
        file: &Arc<str>,
        known: &Text,
        take: &mut dyn FnMut(ParsedObject),
    ) -> Result<Option<Text>, Warning>;
}

/// The state of one file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) text: Text,
    /// Whether the file could ever be read.
    pub(super) was_read: bool,
    /// Why the current content of the file is not used.
    pub(super) refused: Option<Box<Warning>>,
    /// Objects that were removed from the file while it had an object without a kind or name.
    pub(super) held: Vec<Claim>,
}

impl File {
    /// The objects in the file, and those that are held.
    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.text.last_claims().chain(self.held.iter().cloned())
    }
}
