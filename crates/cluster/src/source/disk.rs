//! Reads the files of the catalog from the disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::catalog::Files;
use super::parse::{ParsedObject, unreadable};
use super::place::{self, Stamp};
use super::text::{self, Text};
use crate::convert::Context;
use crate::warning::Warning;

/// How often to read a file that changes while it is read.
const ATTEMPTS: usize = 3;

/// Files on the disk, under the names that the user gave.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    context: Context,
}

impl Disk {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// Milliseconds since 1970, if known.
    pub(crate) fn now(&self) -> Option<i64> {
        self.context.clock.now()
    }

    /// Drops shared values that no object uses any more.
    pub(crate) fn sweep(&mut self) {
        self.context.interner.sweep();
    }
}

impl Files for Disk {
    fn read(
        &mut self,
        name: &Arc<str>,
        known: &Text,
        take: &mut dyn FnMut(ParsedObject),
    ) -> Result<Option<Text>, Warning> {
        let cannot = |error: io::Error| unreadable(name, &error.to_string());
        let path = Path::new(&**name);
        for _ in 0..ATTEMPTS {
            let file = match place::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.context.aliases.end(name, 0);
                    return Ok(None);
                }
                result => result.map_err(cannot)?,
            };
            let metadata = file.metadata().map_err(cannot)?;
            if metadata.is_dir() {
                return Ok(None);
            }
            place::refuse_special(&metadata).map_err(cannot)?;
            let text = text::read(name, &file, known, &mut self.context, take);
            if Stamp::of(&file.metadata().map_err(cannot)?) == Stamp::of(&metadata) {
                return text.map(Some);
            }
        }
        Err(unreadable(name, "it is being written to"))
    }
}
