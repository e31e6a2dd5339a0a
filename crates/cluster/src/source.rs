//! Where the cluster's objects come from: [`read`] a file, a folder or standard input once, or
//! [`watch()`] it.
//!
//! Both go through the same steps: list the files, parse what changed in them, compare with what
//! was told before, tell the difference. `read` feeds the events to an [`Index`] at once.

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
use topology_core::snapshot::Snapshot;

use crate::claims;
use crate::clock::Clock;
use crate::convert::Context;
use crate::event::{Batch, Completeness, Event, FileReport};
use crate::index::Index;
use crate::object::{Ignored, ObjectKey};
use crate::unused_policies::{self, NodeLabels};
use crate::warning::Warning;

pub(crate) use aliases::Aliases;
use catalog::{Catalog, Files};
use disk::Disk;
pub(crate) use object_warnings::last_good_stays;
use parse::ParsedObject;
pub(crate) use parse::{ObjectState, fingerprint};
use place::SourcePath;
use text::Text;

pub use crate::convert::refused_label;
pub use annotations::annotations;
pub use leaves::{Leaf, leaves};
pub use watch::{Watch, watch};

/// What standard input is called in warnings.
const STDIN: &str = "<stdin>";

/// How many bytes are read of what can be read only once: some 20 times what a cluster of 5,000 nodes is.
const MOST_OF_STREAM: u64 = 1 << 30;

/// What the files do not say themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where Service addresses come from, if no `ServiceCIDR` object says it.
    pub service_cidrs: Vec<IpNetwork>,
    /// Milliseconds since 1970: drains may not end more than 72 hours after it, and those that have ended give a warning.
    /// If it is not known, they may not end more than 72 hours after their creation.
    pub now: Option<i64>,
    /// The labels that annotations of Services may use besides those that are always known; any if it is not said.
    pub annotation_keys: Option<BTreeSet<Arc<str>>>,
}

impl Options {
    fn context(&self) -> Context {
        Context::judging(Clock::at(self.now), self.annotation_keys.clone())
    }
}

/// A cluster that was read once.
#[derive(Debug)]
pub struct Loaded {
    /// The cluster.
    pub snapshot: Snapshot,
    /// Everything that is wrong in the input, by file and line.
    pub warnings: Vec<Warning>,
    /// How many objects of kinds that are not read there were, by kind.
    pub skipped: BTreeMap<Arc<str>, usize>,
    /// The objects that are sound and none of our business, and why.
    pub ignored: BTreeMap<ObjectKey, Ignored>,
    /// `Partial` when some file could not be used at all; a warning names it.
    pub completeness: Completeness,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path cannot be looked at.
    #[error("{}: {source}; name an existing file or folder, or - for standard input", path.display())]
    Path {
        /// The path as given.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A pipe cannot be followed.
    #[error("{}: this is a pipe, which can be read only once; name a file or folder to follow, or - for standard input", path.display())]
    Pipe {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder holds nothing to read.
    #[error("{}: no file in this folder ends in .yaml, .yml or .json; add one or name another folder", path.display())]
    NoFiles {
        /// The path as given.
        path: PathBuf,
    },
    /// Not one file could be used. The warnings say why; there is at least one.
    #[error("{}", Lines(.warnings))]
    Unusable {
        /// One for each file.
        warnings: Vec<Warning>,
    },
    /// Changes cannot be noticed.
    #[error("{}: cannot be watched: {message}", path.display())]
    Watch {
        /// The path as given.
        path: PathBuf,
        /// What is in the way, and what helps.
        message: String,
    },
}

/// Warnings, one a line.
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
/// What is wrong in a file gives warnings, and everything else goes on. It is an error only when
/// nothing could be used at all: no such path, no file in the folder, or every file refused.
pub fn read(path: &Path, options: &Options) -> Result<Loaded, ReadError> {
    let mut index = Index::new(options.service_cidrs.clone());
    let mut tell = |batch| drop(index.apply(batch));
    let catalog = match SourcePath::new(path) {
        SourcePath::Stdin => tell_stdin(options.context(), &mut tell),
        SourcePath::Pipe(path) => {
            let name = path.to_string_lossy().into();
            tell_stream(name, File::open(path), options.context(), &mut tell)
        }
        SourcePath::Path(root) => tell_path(&root, options.context(), &mut tell)?,
    };
    finish(index, &catalog, options.now)
}

/// Whether there is a file or folder at `path` that can be followed; standard input (`-`) is always there.
pub fn check(path: &Path) -> Result<(), ReadError> {
    let root = match SourcePath::new(path) {
        SourcePath::Stdin => return Ok(()),
        SourcePath::Pipe(path) => return Err(ReadError::Pipe { path }),
        SourcePath::Path(root) => root,
    };
    let usable = std::fs::metadata(&root).and_then(|metadata| place::refuse_special(&metadata));
    usable.map_err(|source| ReadError::Path { path: root, source })
}

/// Whether what is at `path` can be read only once: standard input (`-`) or a pipe.
pub fn is_read_once(path: &Path) -> bool {
    matches!(
        SourcePath::new(path),
        SourcePath::Stdin | SourcePath::Pipe(_)
    )
}

/// Reads a text that is called `name` in warnings.
pub fn read_text(name: &str, text: &[u8], options: &Options) -> Result<Loaded, ReadError> {
    let mut index = Index::new(options.service_cidrs.clone());
    let mut memory = Memory {
        text: Ok(text),
        context: options.context(),
    };
    let catalog = tell_list([name.into()], &mut memory, &mut |batch| {
        drop(index.apply(batch));
    });
    finish(index, &catalog, options.now)
}

/// Tells what is at `root` as one full list. Returns what is known of the files.
fn tell_path(
    root: &Path,
    context: Context,
    tell: &mut dyn FnMut(Batch),
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
        tell(FileReport::of(warning).into());
    }
    Ok(tell_list(
        listing.files.into_keys(),
        &mut Disk::new(context),
        tell,
    ))
}

/// Tells what standard input says, read to its end, as one full list.
fn tell_stdin(context: Context, tell: &mut dyn FnMut(Batch)) -> Catalog {
    tell_stream(STDIN.into(), Ok(io::stdin().lock()), context, tell)
}

/// Tells what can be read only once, read to its end, as one full list.
fn tell_stream(
    name: Arc<str>,
    stream: io::Result<impl Read>,
    context: Context,
    tell: &mut dyn FnMut(Batch),
) -> Catalog {
    let mut text = Vec::new();
    let result = stream.and_then(|stream| read_within(stream, MOST_OF_STREAM, &mut text));
    let mut memory = Memory {
        text: result.map(|()| &*text),
        context,
    };
    tell_list([name], &mut memory, tell)
}

/// Reads a stream to its end, and no more than `most` bytes.
fn read_within(stream: impl Read, most: u64, text: &mut Vec<u8>) -> io::Result<()> {
    let length = stream.take(most + 1).read_to_end(text)?;
    if u64::try_from(length).is_ok_and(|length| length <= most) {
        return Ok(());
    }
    let message = format!(
        "it has more than {} MiB, and what can be read only once is held in memory; write it to a file and name that",
        most >> 20
    );
    Err(io::Error::new(io::ErrorKind::FileTooLarge, message))
}

/// Tells a full list. Returns what is known of its files.
fn tell_list(
    names: impl IntoIterator<Item = Arc<str>>,
    files: &mut impl Files,
    tell: &mut dyn FnMut(Batch),
) -> Catalog {
    let mut catalog = Catalog::default();
    tell(Event::Begin.into());
    for name in names {
        catalog.update(BTreeSet::from([name]), files, tell);
    }
    let (completeness, reports) = catalog.list_ended();
    tell(Batch {
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

/// One text in memory, or why there is none.
struct Memory<'a> {
    text: io::Result<&'a [u8]>,
    context: Context,
}

impl Files for Memory<'_> {
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
