//! Names one crate or Debian package that an image contains.

/// A crate or a Debian package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) version: String,
    /// Its package URL, which says where it is from.
    pub(super) url: String,
    /// An SPDX expression; none where the licence is a text in the image.
    pub(super) licence: Option<String>,
}
