//! The file or object that a warning is about.

use std::borrow::Cow;
use std::fmt;

use crate::object::{Kind, ObjectKey};
use crate::text::OneLine;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A file or a collection as a whole, or a line whose object is not known.
    File,
    Object(ObjectKey),
    /// An object of a kind that this program reads. Its name is missing or not valid.
    Misnamed(Kind, Option<Box<str>>),
    /// An object of another kind, and its name if known.
    Other(&'static str, Option<Box<str>>),
}

impl Subject {
    /// The object, if its kind is read and its name is valid.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object(key) => Some(key),
            Self::File | Self::Misnamed(..) | Self::Other(..) => None,
        }
    }

    /// The kind of the object, if it is a kind that this program reads.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Object(ObjectKey { kind, .. }) | Self::Misnamed(kind, _) => Some(*kind),
            Self::File | Self::Other(..) => None,
        }
    }

    /// The same subject with its name as written.
    pub(crate) fn named(self, name: Box<str>) -> Self {
        match self {
            Self::File => Self::File,
            Self::Object(ObjectKey { kind, .. }) | Self::Misnamed(kind, _) => {
                Self::Misnamed(kind, Some(name))
            }
            Self::Other(kind, _) => Self::Other(kind, Some(name)),
        }
    }
}

/// `Service shop/cart`, `Node n1`, `Service`; nothing for a file.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::File => return Ok(()),
            Self::Object(key) => (key.kind.as_str(), Some(Cow::Owned(key.short_name()))),
            Self::Misnamed(kind, name) => (kind.as_str(), name.as_deref().map(Cow::Borrowed)),
            Self::Other(kind, name) => (*kind, name.as_deref().map(Cow::Borrowed)),
        };
        f.write_str(kind)?;
        name.map_or(Ok(()), |name| write!(f, " {}", OneLine(&name)))
    }
}
