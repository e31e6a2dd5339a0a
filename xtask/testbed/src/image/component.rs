//! Names one crate or Debian package that an image contains.

/// A crate or a Debian package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) version: String,
    /// Its package URL.
    pub(super) url: String,
    /// An SPDX expression; `None` if the image contains the licence text.
    pub(super) licence: Option<String>,
}
