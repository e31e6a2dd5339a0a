//! Makes text safe to print on a terminal: objects and the API server may hold any characters.

use std::fmt;

use cluster::text::one_line;

/// Text for users: no character in it controls the terminal, hides, or reorders other text.
///
/// Everything that [`grid`](super::grid) and [`wrap`](super::wrap) print consists of it.
/// [`Plain::lines`] adds the only line breaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plain(String);

impl Plain {
    /// Several texts, separated by `between`, which is not escaped.
    pub fn lines(lines: &[Self], between: &str) -> Self {
        let lines: Vec<&str> = lines.iter().map(Self::as_str).collect();
        Self(lines.join(between))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Plain {
    fn from(text: T) -> Self {
        Self(one_line(text.as_ref()).into_owned())
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
