//! Reads the cluster's objects from a file, a folder or standard input: [`read`] once, [`watch()`]
//! continuously.
//!
//! Both list the files, parse the parts that changed, compare the objects with those reported
//! before, and send the difference as events. `read` applies the events to an [`Index`] at once.

mod aliases;
mod annotations;
mod catalog;
mod disk;
mod leaves;
mod object_warnings;
mod parse;
mod parts;
mod place;
mod text;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use topology_core::model::IpNetwork;
use topology_core::snapshot::{MarkMask, MarkedPort, Snapshot};

use crate::claims;
use crate::clock::Clock;
use crate::convert::Context;
use crate::event::{Batch, Completeness, Event, FileReport};
use crate::index::Index;
use crate::object::{Ignored, ObjectKey};
use crate::unused_policies::{self, NodeLabels};
use crate::warning::Warning;
use crate::{AllowLists, ServiceSelection};

pub(crate) use aliases::Aliases;
use catalog::{Catalog, Files};
use disk::Disk;
pub(crate) use object_warnings::last_good_stays;
use parse::ParsedObject;
pub(crate) use parse::{ObjectState, fingerprint};
use place::SourcePath;
use text::Text;

pub use crate::convert::{annotation_labels, refused_label};
pub use annotations::annotations;
pub use leaves::{Leaf, leaves};
pub use object_tree::yaml_boolean;
pub use watch::{Watch, watch};

/// The name of standard input in warnings.
const STDIN: &str = "<stdin>";

/// The limit in bytes for a pipe or standard input: about 20 times a cluster of 5,000 nodes.
const MOST_OF_STREAM: u64 = 1 << 30;

/// Facts that the files do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The ranges of Service addresses, used while there is no `ServiceCIDR` object.
    pub service_cidrs: Vec<IpNetwork>,
    /// Milliseconds since 1970, if known. A drain must end within 72 hours of this time, or else
    /// of its creation. A drain that has ended gives a warning.
    pub now: Option<i64>,
    /// What Services may use.
    pub allowed: AllowLists,
    /// The Services to read.
    pub services: ServiceSelection,
    /// The bits of firewall marks.
    pub mark_mask: MarkMask,
    /// Firewall marks that an agent allocated.
    pub marks: Vec<(MarkedPort, u32)>,
}

impl Options {
    /// An empty index with these facts.
    pub(crate) fn index(&self) -> Index {
        let mut index = Index::new(self.service_cidrs.clone()).with_mark_mask(self.mark_mask);
        let marks = self.marks.iter().cloned();
        index.snapshot_mut().restore_firewall_marks(marks);
        index
    }

    fn context(&self) -> Context {
        Context::new(Clock::at(self.now), self.allowed.clone(), self.services)
    }
}

/// The result of reading a cluster once.
#[derive(Debug)]
pub struct Loaded {
    pub snapshot: Snapshot,
    /// Sorted by file and line.
    pub warnings: Vec<Warning>,
    /// The number of objects of kinds that this program does not read, by kind.
    pub skipped: BTreeMap<Arc<str>, usize>,
    /// The valid objects that this program does not use, and why.
    pub ignored: BTreeMap<ObjectKey, Ignored>,
    /// `Partial` if some file could not be used at all; a warning names the file.
    pub completeness: Completeness,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path does not exist, or cannot be accessed.
    #[error("{}: {source}; name an existing file or folder, or - for standard input", path.display())]
    Path { path: PathBuf, source: io::Error },
    /// A pipe cannot be followed.
    #[error("{}: this is a pipe, which can be read only once; name a file or folder to follow, or - for standard input", path.display())]
    Pipe { path: PathBuf },
    /// The folder holds nothing to read.
    #[error("{}: no file in this folder ends in .yaml, .yml or .json; add a file or name another folder", path.display())]
    NoFiles { path: PathBuf },
    /// No file could be used. There is at least one warning, which says why.
    #[error("{}", Lines(.warnings))]
    Unusable { warnings: Vec<Warning> },
    /// The operating system cannot report changes.
    #[error("{}: cannot be watched: {message}", path.display())]
    Watch {
        path: PathBuf,
        /// The problem and the remedy.
        message: String,
    },
}

/// Prints one warning per line.
struct Lines<'a>(&'a [Warning]);

impl std::fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0.iter();
        rest.next().map_or(Ok(()), |first| first.fmt(f))?;
        rest.try_for_each(|warning| write!(f, "\n{warning}"))
    }
}

/// Reads a file, every YAML and JSON file below a folder, a pipe, or standard input (`-`).
///
/// A problem in a file gives a warning, and everything else is used. Fails only if nothing can be
/// used: the path does not exist, the folder has no such file, or every file is refused.
pub fn read(path: &Path, options: &Options) -> Result<Loaded, ReadError> {
    let mut index = options.index();
    let mut send = |batch| drop(index.apply(batch));
    let catalog = match SourcePath::new(path) {
        SourcePath::Stdin => send_stdin(options.context(), &mut send),
        SourcePath::Pipe(path) => {
            let name = path.to_string_lossy().into();
            send_stream(name, File::open(path), options.context(), &mut send)
        }
        SourcePath::Path(root) => send_path(&root, options.context(), &mut send)?,
    };
    finish(index, &catalog, options.now)
}

/// Checks that `path` is a file or folder that can be followed. Standard input (`-`) always passes.
pub fn check(path: &Path) -> Result<(), ReadError> {
    let root = match SourcePath::new(path) {
        SourcePath::Stdin => return Ok(()),
        SourcePath::Pipe(path) => return Err(ReadError::Pipe { path }),
        SourcePath::Path(root) => root,
    };
    let usable = std::fs::metadata(&root).and_then(|metadata| place::refuse_special(&metadata));
    usable.map_err(|source| ReadError::Path { path: root, source })
}

/// Whether `path` can be read only once: standard input (`-`) or a pipe.
pub fn is_read_once(path: &Path) -> bool {
    matches!(
        SourcePath::new(path),
        SourcePath::Stdin | SourcePath::Pipe(_)
    )
}

/// Reads `text`. Warnings use `name` as the name of the file.
pub fn read_text(name: &str, text: &[u8], options: &Options) -> Result<Loaded, ReadError> {
    let mut index = options.index();
    let mut memory = TextInMemory {
        text: Ok(text),
        context: options.context(),
    };
    let catalog = send_list([name.into()], &mut memory, &mut |batch| {
        drop(index.apply(batch));
    });
    finish(index, &catalog, options.now)
}

/// Sends the objects at `root` as one full list.
fn send_path(
    root: &Path,
    context: Context,
    send: &mut dyn FnMut(Batch),
) -> Result<Catalog, ReadError> {
    let fail = |source| ReadError::Path {
        path: root.to_owned(),
        source,
    };
    let listing = place::list(root).map_err(fail)?;
    if listing.files.is_empty() {
        return Err(ReadError::NoFiles {
            path: root.to_owned(),
        });
    }
    for warning in listing.warnings {
        send(FileReport::of(warning).into());
    }
    Ok(send_list(
        listing.files.into_keys(),
        &mut Disk::new(context),
        send,
    ))
}

/// Reads standard input to its end, and sends it as one full list.
fn send_stdin(context: Context, send: &mut dyn FnMut(Batch)) -> Catalog {
    send_stream(STDIN.into(), Ok(io::stdin().lock()), context, send)
}

/// Reads a pipe or standard input to its end, and sends it as one full list.
fn send_stream(
    name: Arc<str>,
    stream: io::Result<impl Read>,
    context: Context,
    send: &mut dyn FnMut(Batch),
) -> Catalog {
    let mut text = Vec::new();
    let result = stream.and_then(|stream| read_within(stream, MOST_OF_STREAM, &mut text));
    let mut memory = TextInMemory {
        text: result.map(|()| &*text),
        context,
    };
    send_list([name], &mut memory, send)
}

/// Reads a stream to its end. Fails if it has more than `most` bytes.
fn read_within(stream: impl Read, most: u64, text: &mut Vec<u8>) -> io::Result<()> {
    let length = stream.take(most + 1).read_to_end(text)?;
    if u64::try_from(length).is_ok_and(|length| length <= most) {
        return Ok(());
    }
    let message = format!(
        "it has more than {} MiB, and a pipe or standard input is held in memory; write it to a file and name the file",
        most >> 20
    );
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

/// Sends the objects of these files as one full list.
fn send_list(
    names: impl IntoIterator<Item = Arc<str>>,
    files: &mut impl Files,
    send: &mut dyn FnMut(Batch),
) -> Catalog {
    let mut catalog = Catalog::default();
    send(Event::Begin.into());
    for name in names {
        catalog.update(BTreeSet::from([name]), files, send);
    }
    let (completeness, reports) = catalog.list_ended();
    send(Batch {
        events: vec![Event::Complete(completeness)],
        reports,
    });
    catalog
}

fn finish(index: Index, catalog: &Catalog, now: Option<i64>) -> Result<Loaded, ReadError> {
    let mut warnings: Vec<Warning> = index.warnings().cloned().collect();
    let place = |key: &ObjectKey| {
        let (file, line) = catalog.place_of(key)?;
        Some((Arc::clone(file), line))
    };
    warnings.extend(unused_policies::warnings(
        index.snapshot(),
        now,
        NodeLabels::All,
        place,
    ));
    warnings.extend(claims::warnings(index.snapshot(), place));
    warnings.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
    if catalog.is_useless() {
        return Err(ReadError::Unusable { warnings });
    }
    Ok(Loaded {
        warnings,
        skipped: index.skipped(),
        ignored: index.ignored().clone(),
        completeness: index.completeness().unwrap_or(Completeness::Partial),
        snapshot: index.into_snapshot(),
    })
}

/// A text in memory, or the error of reading it.
struct TextInMemory<'a> {
    text: io::Result<&'a [u8]>,
    context: Context,
}

impl Files for TextInMemory<'_> {
    fn read(
        &mut self,
        name: &Arc<str>,
        known: &Text,
        take: &mut dyn FnMut(ParsedObject),
    ) -> Result<Option<Text>, Warning> {
        let bytes = self
            .text
            .as_ref()
            .map_err(|error| parse::unreadable(name, &error.to_string()))?;
        text::read(name, Cursor::new(bytes), known, &mut self.context, take).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_does_not_end_is_refused() {
        let mut text = Vec::new();
        let error = read_within(io::repeat(b'#'), 2 << 20, &mut text).unwrap_err();
        assert!(error.to_string().contains("more than 2 MiB"), "{error}");
        let exactly = io::repeat(b'#').take(2 << 20);
        assert!(read_within(exactly, 2 << 20, &mut Vec::new()).is_ok());
    }
}
