//! Defines how the catalog reads files, and what it keeps of each.

use std::sync::Arc;

use crate::source::parse::{Claim, ParsedObject};
use crate::source::text::Text;
use crate::warning::Warning;

/// How many events a batch has at most.
pub(super) const BATCH: usize = 256;

/// Reads files. A trait, so that the rules are tested without a disk.
pub(crate) trait Files {
    /// Reads a file, taking what did not change from `known`, and passes the usable objects in the
    /// rest of it to `take` (some of them more than once if reading had to start again).
    /// `Ok(None)` when the file does not exist.
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
    /// Whether any content of the file was ever read.
    pub(super) was_read: bool,
    /// Why the file's present content is not used.
    pub(super) refused: Option<Box<Warning>>,
    /// Objects that were removed from the file while it held an object without a kind or name.
    pub(super) held: Vec<Claim>,
}

impl File {
    /// The objects in the file, with those that are kept from an earlier content.
    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        self.text.last_claims().chain(self.held.iter().cloned())
    }
}
