//! Warnings about the input, each with its place and a remedy.

// A new variant must be handled in each `match`, and not fall under `_`.
#![warn(clippy::wildcard_enum_match_arm)]

mod code;
mod subject;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::object::ObjectKey;
use crate::text::{OneLine, shorten};

pub use code::Code;
pub use subject::Subject;

/// A part of the input that is not used as written. Everything else is used.
///
/// Its [`Display`](fmt::Display) is one line:
/// `shop.yaml:12: Service shop/cart: spec.ports[0].port: 0 is not a port; use 1 to 65535`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Warning {
    /// The file as the user named it, `<stdin>` for `-`; empty if not known.
    pub file: Arc<str>,
    /// Counted from 1; 0 if the warning is about the file as a whole.
    pub line: u32,
    pub subject: Subject,
    /// As `kubectl explain` and `jsonpath` write it; empty if the warning is about the object.
    pub field: Box<str>,
    /// The problem, and what the program does about it.
    pub message: Box<str>,
    /// The correct form, or what to do.
    pub remedy: Box<str>,
    pub code: Code,
}

impl Warning {
    /// A warning about a file as a whole, or about a line whose object is not known.
    pub(crate) fn of_file(
        file: &Arc<str>,
        line: u32,
        message: impl Into<Box<str>>,
        remedy: impl Into<Box<str>>,
    ) -> Self {
        Self {
            file: Arc::clone(file),
            line,
            subject: Subject::File,
            field: "".into(),
            message: shorten(message),
            remedy: shorten(remedy),
            code: Code::File,
        }
    }

    /// A warning about an object as a whole.
    pub(crate) fn of_object(
        file: &Arc<str>,
        line: u32,
        key: &ObjectKey,
        message: impl Into<Box<str>>,
        remedy: impl Into<Box<str>>,
    ) -> Self {
        Self {
            subject: Subject::Object(key.clone()),
            code: Code::of_object(Some(key.kind)),
            ..Self::of_file(file, line, message, remedy)
        }
    }

    /// All parts except the line.
    ///
    /// A new line at the top of a file moves every warning below it, and makes none of them new.
    pub fn identity(&self) -> impl Hash + Eq + '_ {
        let Self {
            file,
            line: _,
            subject,
            field,
            message,
            remedy,
            code: _,
        } = self;
        (file, subject, field, message, remedy)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", OneLine(&self.file))?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.subject != Subject::File {
            let joint = if self.file.is_empty() { "" } else { ": " };
            write!(f, "{joint}{}", self.subject)?;
        }
        for part in [&self.field, &self.message]
            .into_iter()
            .filter(|part| !part.is_empty())
        {
            write!(f, ": {}", OneLine(part))?;
        }
        if !self.remedy.is_empty() {
            write!(f, "; {}", OneLine(&self.remedy))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Kind;

    fn warning() -> Warning {
        Warning {
            file: "shop.yaml".into(),
            line: 12,
            subject: Subject::Misnamed(Kind::Service, Some("shop/cart".into())),
            field: "spec.ports[0].port".into(),
            message: "0 is not a port".into(),
            remedy: "use 1 to 65535".into(),
            code: Code::Field,
        }
    }

    #[test]
    fn a_warning_is_one_line_with_place_object_field_and_remedy() {
        assert_eq!(
            warning().to_string(),
            "shop.yaml:12: Service shop/cart: spec.ports[0].port: 0 is not a port; use 1 to 65535"
        );
        let whole = Warning::of_file(&"shop.yaml".into(), 0, "cannot be read", "");
        assert_eq!(whole.to_string(), "shop.yaml: cannot be read");
        let nowhere = Warning {
            file: "".into(),
            line: 0,
            ..warning()
        };
        assert!(nowhere.to_string().starts_with("Service shop/cart: spec."));
    }

    #[test]
    fn a_warning_stays_one_line_whatever_the_file_holds() {
        let warning = Warning {
            message: "`a\nb\u{1b}[31m` is no port".into(),
            ..warning()
        };
        assert!(
            warning
                .to_string()
                .contains("`a\\nb\\u{1b}[31m` is no port"),
            "{warning}"
        );
    }

    #[test]
    fn moving_a_line_does_not_make_a_warning_new() {
        let here = warning();
        let moved = Warning {
            line: 99,
            ..warning()
        };
        assert!(moved.identity() == here.identity());
        let other = Warning {
            field: "spec.ports[1].port".into(),
            ..warning()
        };
        assert!(other.identity() != here.identity());
    }
}
